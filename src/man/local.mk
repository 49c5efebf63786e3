dist_man_MANS += \
	%D%/bootseer-image.5 \
	%D%/bootseerctl.1
