/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/treecheck.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "image/format.h"

const char *bs_tree_check_name(const char *name, size_t len)
{
	if (len > BS_TREE_NAME_MAX)
		return "its name is longer than 255 bytes";
	if (!bs_path_name_ok(name, len))
		return "its name is not one path component";
	return NULL;
}

const char *bs_tree_check_inode(const struct bs_tree_entry *e)
{
	bool device = false, sized = false;

	switch (e->mode & S_IFMT) {
	case S_IFREG:
		sized = true;
		if (e->size > INT64_MAX)
			return "its size is 2^63 or more";
		break;
	case S_IFLNK:
		sized = true;
		if (e->size < 1 || e->size > BS_TREE_TARGET_MAX)
			return "its symlink target is empty or longer than 4095 bytes";
		break;
	case S_IFCHR:
	case S_IFBLK:
		device = true;
		break;
	case S_IFDIR:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		return "its file type does not exist";
	}
	if (e->mode & ~(uint32_t)(S_IFMT | 07777))
		return "its mode has unknown bits";
	if (!sized && e->size)
		return "it has a size but is neither a file nor a symlink";
	if (!device && (e->rdev_major || e->rdev_minor))
		return "it has a device number but is no device";
	if (e->rdev_major > BS_TREE_MAJOR_MAX || e->rdev_minor > BS_TREE_MINOR_MAX)
		return "its device number is out of range";
	if (e->uid == UINT32_MAX || e->gid == UINT32_MAX)
		return "its owner or group is 2^32 - 1";
	if (e->mtime_ns >= 1000000000u)
		return "its time has 10^9 nanoseconds or more";
	if (!S_ISREG(e->mode) && e->n_extents)
		return "it has extents but is no regular file";
	return NULL;
}

static bool xattr_name_ok(const char *name, size_t len)
{
	static const char *const prefixes[] = { "user.", "trusted.", "security." };

	for (size_t i = 0; i < BS_ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (len > n && memcmp(name, prefixes[i], n) == 0)
			return true;
	}
	return strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

const char *bs_tree_check_xattr(const struct bs_tree_xattr *x, const struct bs_tree_xattr *before)
{
	if (memchr(x->name, 0, x->name_len))
		return "an xattr's name has a NUL";
	if (!xattr_name_ok(x->name, x->name_len))
		return "an xattr's name is not user.*, trusted.*, security.* or an ACL's";
	if (x->value_len > UINT16_MAX)
		return "an xattr's value is longer than 65535 bytes";
	if (before && strcmp(before->name, x->name) >= 0)
		return "its xattrs are not in ascending order";
	return NULL;
}

const char *bs_tree_check_extent(const struct bs_tree_extent *x,
				 const struct bs_tree_extent *before, uint64_t size,
				 uint64_t blob_blocks)
{
	uint64_t n_blocks = bs_tree_blocks(size);

	if (x->n_blocks == 0)
		return "an extent is empty";
	if (x->file_block >= n_blocks || x->n_blocks > n_blocks - x->file_block)
		return "an extent ends behind the file";
	if (x->blob_block >= blob_blocks || x->n_blocks > blob_blocks - x->blob_block)
		return "an extent ends behind the blob";
	if (before && x->file_block < before->file_block + before->n_blocks)
		return "its extents overlap or are not in ascending order";
	if (before && x->file_block == before->file_block + before->n_blocks &&
	    x->blob_block == before->blob_block + before->n_blocks)
		return "two of its extents are one";
	return NULL;
}

int64_t bs_tree_elder(const struct bs_disk_entry *entries, uint32_t i, uint32_t parent)
{
	uint32_t at = i - 1;

	if (at == parent)
		return parent;
	while (at != 0) {
		uint32_t up = le32toh(entries[at].parent);

		if (up == parent)
			return at;
		at = up;
	}
	return -1;
}
