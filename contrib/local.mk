# what a node installs beside the programs: units, engine snippets, completions
