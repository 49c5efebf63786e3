# what a node installs beside the programs: units, engine snippets, completions

# for whoever builds: packages, one command to build, one to test everything
EXTRA_DIST += %D%/check %D%/coverage %D%/deps %D%/leftovers %D%/lib.sh %D%/quickstart .ci/run
