dist_man_MANS += \
	%D%/bootseer-image.5
