dist_man_MANS += %D%/bootseer-annotations.7
dist_man_MANS += %D%/bootseer-hdfs.7
dist_man_MANS += %D%/bootseer-hot.5
dist_man_MANS += %D%/bootseer-image.5
dist_man_MANS += %D%/bootseer.8
dist_man_MANS += %D%/bootseer.conf.5
dist_man_MANS += %D%/bootseerctl.1
dist_man_MANS += %D%/bootseerd.8
