/* The memory of results and scratch: a small pool, 64-byte aligned.

   Freed blocks are kept and used again, which spares large results their page faults. NumPy sees the
   pool as a memory handler (NEP 49), so results are ordinary arrays that own their memory.

   First of the files that make up the extension module. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum {
    ALIGN = 64,
    SMALL_CLASSES = 32,          /* multiples of 64 bytes, up to 2 KiB */
    SMALL_KEPT = 16,             /* blocks kept of each class */
    LARGE_KEPT = 32,
    LARGE_LEAST = 16 << 10,      /* between, malloc is as fast */
    HUGE_LEAST = 4 << 20,
    TRACE_DOMAIN = 389047        /* NumPy's domain in tracemalloc */
};

typedef struct { size_t capacity; } Header; /* in the 64 bytes before the data of a block */

static char *small_free[SMALL_CLASSES][SMALL_KEPT];
static int small_count[SMALL_CLASSES];
static char *large_free[LARGE_KEPT]; /* the longest unused first */
static int large_count;
static size_t large_bytes, large_limit = (size_t)256 << 20;

#ifdef Py_GIL_DISABLED
static PyMutex pool_mutex;
#define LOCK_POOL PyMutex_Lock(&pool_mutex)
#define UNLOCK_POOL PyMutex_Unlock(&pool_mutex)
#else
#define LOCK_POOL ((void)0)
#define UNLOCK_POOL ((void)0)
#endif

static size_t capacity_of(const char *data) { return ((const Header *)(data - ALIGN))->capacity; }

/* Return a new block of the system for `capacity` bytes of data, a multiple of 64. */
static char *system_block(size_t capacity) {
    void *base;
    if (capacity > (size_t)PTRDIFF_MAX - 2 * ALIGN) return NULL;
    if (posix_memalign(&base, ALIGN, capacity + ALIGN)) return NULL;
#if defined(MADV_HUGEPAGE)
    if (capacity >= HUGE_LEAST) {
        uintptr_t first = ((uintptr_t)base + 4095) & ~(uintptr_t)4095;
        uintptr_t last = ((uintptr_t)base + capacity + ALIGN) & ~(uintptr_t)4095;
        (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
    }
#endif
    ((Header *)base)->capacity = capacity;
    return (char *)base + ALIGN;
}

static void system_free(char *data) { free(data - ALIGN); }

static void drop_large(int i) {
    large_bytes -= capacity_of(large_free[i]);
    large_count--;
    memmove(large_free + i, large_free + i + 1, (size_t)(large_count - i) * sizeof *large_free);
}

/* Return the kept block that fits `capacity` best with at most a quarter to spare, or NULL. */
static char *reuse_large(size_t capacity) {
    int best = -1;
    for (int i = large_count - 1; i >= 0; i--) {
        size_t have = capacity_of(large_free[i]);
        if (have < capacity || have - capacity > capacity / 4) continue;
        if (best < 0 || have < capacity_of(large_free[best])) best = i;
    }
    if (best < 0) return NULL;
    char *data = large_free[best];
    drop_large(best);
    return data;
}

static char *pool_take(size_t bytes) {
    size_t capacity = bytes ? (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (capacity < bytes) return NULL;
    size_t class = capacity / ALIGN - 1;
    char *data = NULL;
    LOCK_POOL;
    if (class < SMALL_CLASSES) {
        if (small_count[class]) data = small_free[class][--small_count[class]];
    } else if (capacity >= LARGE_LEAST) {
        data = reuse_large(capacity);
    }
    UNLOCK_POOL;
    return data ? data : system_block(capacity);
}

static void pool_give(char *data) {
    size_t capacity = capacity_of(data), class = capacity / ALIGN - 1;
    char *doomed[LARGE_KEPT];
    int n = 0;
    LOCK_POOL;
    if (class < SMALL_CLASSES && small_count[class] < SMALL_KEPT) {
        small_free[class][small_count[class]++] = data;
        data = NULL;
    } else if (capacity >= LARGE_LEAST && capacity <= large_limit) {
        while (large_count == LARGE_KEPT || large_bytes + capacity > large_limit) {
            doomed[n++] = large_free[0];
            drop_large(0);
        }
        large_free[large_count++] = data;
        large_bytes += capacity;
        data = NULL;
    }
    UNLOCK_POOL;
    if (data) system_free(data);
    while (n) system_free(doomed[--n]);
}

/* NumPy's view of the pool */
static void *handler_malloc(void *ctx, size_t size) { (void)ctx; return pool_take(size); }
static void handler_free(void *ctx, void *data, size_t size) {
    (void)ctx, (void)size;
    if (data) pool_give(data);
}
static void *handler_calloc(void *ctx, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    void *data = handler_malloc(ctx, count * size);
    return data ? memset(data, 0, count * size) : NULL;
}
static void *handler_realloc(void *ctx, void *data, size_t size) {
    if (data && size <= capacity_of(data)) return data;
    void *larger = handler_malloc(ctx, size);
    if (larger && data) {
        memcpy(larger, data, capacity_of(data));
        pool_give(data);
    }
    return larger;
}
static PyDataMem_Handler handler = {
    "lazyarr_pool", 1, {NULL, handler_malloc, handler_calloc, handler_realloc, handler_free}};
static PyObject *handler_capsule;

