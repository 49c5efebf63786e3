/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* An intrusive doubly linked ring: the head is an entry that holds nothing. */
#ifndef BS_BASE_LIST_H
#define BS_BASE_LIST_H

#include <stdbool.h>

#include "base/mem.h"

struct bs_list {
	struct bs_list *prev, *next;
};

static inline void bs_list_init(struct bs_list *head)
{
	head->prev = head->next = head;
}

static inline bool bs_list_empty(const struct bs_list *head)
{
	return head->next == head;
}

static inline void bs_list_append(struct bs_list *head, struct bs_list *entry)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

/* Takes the entry out; it is then a ring of its own, so that doing it twice is harmless. */
static inline void bs_list_remove(struct bs_list *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	bs_list_init(entry);
}

#define bs_list_entry(ptr, type, member) BS_CONTAINER_OF(ptr, type, member)

/* The body may remove it, but no other entry. */
#define bs_list_for_each(it, head)                                                                 \
	for (struct bs_list *it = (head)->next, *it##_next = it->next; it != (head);               \
	     it = it##_next, it##_next = it->next)

#endif
