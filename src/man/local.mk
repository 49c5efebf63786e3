dist_man_MANS += %D%/bootseer.conf.5
