# hook mode (DESIGN §9) adds bootseer-hook here
