// NumPy's memory, with a fence: each array ends at a page that nobody may touch, and its margins are looked at when it
// is freed.  A write behind an array or before it ends the process, and names the array's size.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGNMENT = 16, MARGIN = 0xAB, FRESH = 0xCD };

typedef struct {
    size_t mark, size, length;
} Header; // at the start of the mapping, one page or more before the array

static const size_t MARK = 0xfe9ce;

static size_t padded(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static Header *header_of(char *data) { return (Header *)(((uintptr_t)data & ~(uintptr_t)(PAGE - 1)) - PAGE); }

static void *take(size_t size) {
    size = size ? size : 1;
    size_t length = ((padded(size) + PAGE - 1) / PAGE + 2) * PAGE;
    char *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    mprotect(start + length - PAGE, PAGE, PROT_NONE);
    *(Header *)start = (Header){MARK, size, length};
    char *data = start + length - PAGE - padded(size);
    memset(start + sizeof(Header), MARGIN, data - start - sizeof(Header));
    memset(data, FRESH, size);
    memset(data + size, MARGIN, padded(size) - size);
    return data;
}

static void refuse(const char *what, size_t size, long where) {
    fprintf(stderr, "fence: %s an array of %zu bytes, at byte %ld\n", what, size, where);
    abort();
}

static void check(char *data) {
    Header *header = header_of(data);
    if (header->mark != MARK)
        refuse("the header is gone of", 0, 0);
    for (size_t at = header->size; at < padded(header->size); at++)
        if ((unsigned char)data[at] != MARGIN)
            refuse("a write behind", header->size, (long)at);
    for (char *at = (char *)(header + 1); at < data; at++)
        if ((unsigned char)*at != MARGIN)
            refuse("a write before", header->size, (long)(at - data));
}

static void give(char *data) {
    if (!data)
        return;
    check(data);
    munmap(header_of(data), header_of(data)->length);
}

static void *fenced_malloc(void *context, size_t size) { return take(size); }

static void *fenced_calloc(void *context, size_t count, size_t each) {
    void *data = take(count * each);
    return data ? memset(data, 0, count * each) : NULL;
}

static void fenced_free(void *context, void *data, size_t size) { give(data); }

static void *fenced_realloc(void *context, void *data, size_t size) {
    void *moved = take(size);
    if (data && moved) {
        size_t before = header_of(data)->size;
        memcpy(moved, data, before < size ? before : size);
        give(data);
    }
    return moved;
}

// NumPy's PyDataMem_Handler
struct {
    char name[127];
    uint8_t version;
    struct {
        void *context;
        void *(*malloc)(void *, size_t);
        void *(*calloc)(void *, size_t, size_t);
        void *(*realloc)(void *, void *, size_t);
        void (*free)(void *, void *, size_t);
    } allocator;
} handler = {"fence", 1, {NULL, fenced_malloc, fenced_calloc, fenced_realloc, fenced_free}};
