/* What CUPTI calls while a program runs: at calls that may hold the host, and where it needs or returns a buffer of records.
 *
 * Nothing here takes Python's GIL. A callback that waited for it could wait for ever: PyTorch's allocator calls cudaMalloc with its mutex
 * held and without the GIL, and a thread with the GIL that frees a tensor waits for that mutex. So Python frames are read as memory. That is
 * safe for the calling thread, whose frames nobody changes while it is in compiled code. The frames of the main thread, for a thread
 * without Python frames, may change meanwhile: they are read by process_vm_readv, which fails where memory is gone, and no address
 * is followed later: it counts only if it is that of a code object known to be alive.
 *
 * Where the fields stand is handed over by native.py, which has found it out and tried it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8192, DEEPEST = 128, POOL = 512, BUFFER = 1 << 20, LONGEST = 256, CALLS = 2048 };
enum { PAGE = 4096 }; /* bytes: a page of memory has as many, or a multiple */
enum { KINDS = 128, KERNEL = 10, NAME = 104, NAMES = 1 << 16, MOST_NEW = 4096 }; /* see layouts.py */

struct entry {
    _Atomic uint64_t ready; /* the turn of the ring in which it was filled */
    uint32_t correlation, thread, count, meanwhile;
    uint64_t word; /* see word_of */
    uint64_t frames[2 * DEEPEST]; /* address of the code object, address of the instruction */
};

struct layout {
    int64_t chain;    /* of the pointer to a struct that holds the current frame, in a thread's state; -1: the state holds it itself */
    int64_t current;  /* of the current frame, in that struct or state */
    int64_t code, instruction, previous; /* in a frame */
};

static struct layout at;
static void *(*this_state)(void);
static char *main_state;
static pid_t process;
static struct entry *ring;
static _Atomic uint64_t head, tail, lost;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *spare[POOL];
static struct { uint8_t *data; uint64_t length; } filled[POOL];
static unsigned spares;
static _Atomic unsigned fulls;
static _Atomic uint64_t dropped;
static uint64_t names[NAMES]; /* of kernels that were seen, by their address; one thread uses it */
static uint32_t named;

static _Atomic int woken; /* the thread that collects is not to wait */
enum { LOOK = 10 }; /* milliseconds between two looks at how much there is to collect */

static size_t span; /* of a frame, up to the last of the fields that are read */
static int forked; /* this is a child that nobody records: collect nothing */

enum { STACK = 1, SIZE = 2, STREAM = 4, PER_THREAD = 8 };
static uint32_t (*leave)(void);
static _Atomic int leaves; /* CUPTI is to leave the process when the next call ends */

static uint8_t asked[4][CALLS]; /* what is kept of a call besides its record, by domain and number */

/* What is kept of a call besides its record. */
void tap_asked(uint32_t domain, uint32_t number, uint32_t what)
{
    asked[domain & 3][number % CALLS] = (uint8_t)what;
}

/* Records of calls are made here: those of CUPTI take three times as long. */
enum { DRIVER = 4, RUNTIME = 5, ENDED = 1 << 16, DEEP = 8 };
struct api { /* CUpti_ActivityAPI */
    uint32_t kind, number;
    uint64_t start, end;
    uint32_t process, thread, correlation, status;
};
struct ended {
    _Atomic uint64_t ready; /* the turn of the ring in which it was filled */
    struct api record;
};
struct open_call { /* that has begun in this thread */
    uint64_t start;
    uint32_t correlation, has_stack;
};
static struct ended *ended;
static _Atomic uint64_t calls_head, calls_tail, calls_lost;
static uint32_t (*get_time)(uint64_t *);
static uint32_t (*get_stream)(void *context, void *stream, uint8_t per_thread, uint32_t *number);
static __thread struct open_call open_calls[DEEP];
static __thread uint32_t depth, thread, own_part;
static _Atomic uint32_t part; /* of the recording: CUPTI leaves the process between two of them, and calls that are open then do not end */

static uint64_t clock_of_records(void)
{
    uint64_t time = 0;
    get_time(&time);
    return time;
}

static uint32_t own_thread(void)
{
    if (!thread)
        thread = (uint32_t)syscall(SYS_gettid);
    return thread;
}

static void in_child(void)
{
    forked = 1;
    pthread_mutex_init(&lock, NULL);
}

/* Take memory, and note where things are. Returns 0 where there is no memory, or the layout is absurd. */
int tap_begin(const struct layout *given, void *state_function, void *main_thread_state, void *time_function, void *stream_function)
{
    at = *given;
    span = 8 + (size_t)(at.code > at.instruction ? at.code : at.instruction);
    if (span < 8 + (size_t)at.previous)
        span = 8 + (size_t)at.previous;
    if (span > LONGEST)
        return 0;
    this_state = (void *(*)(void))state_function;
    main_state = main_thread_state;
    get_time = (uint32_t (*)(uint64_t *))time_function;
    get_stream = (uint32_t (*)(void *, void *, uint8_t, uint32_t *))stream_function;
    process = getpid();
    ring = calloc(SLOTS, sizeof *ring);
    ended = calloc(ENDED, sizeof *ended);
    return ring && ended && !pthread_atfork(NULL, NULL, in_child);
}

struct page {
    const char *start; /* of what `data` holds; NULL: nothing */
    char data[PAGE];
};

static int read_own(struct page *page, void *to, const char *from, size_t size)
{
    (void)page;
    memcpy(to, from, size);
    return 1;
}

static int copied(void *to, const char *from, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)from, size};
    return process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Each read is a system call of a microsecond, and frames lie side by side: a whole page is read, of which others are taken. */
static int read_foreign(struct page *page, void *to, const char *from, size_t size)
{
    const char *start = from - (uintptr_t)from % PAGE;
    if (from + size > start + PAGE)
        return copied(to, from, size);
    if (page->start != start) {
        page->start = NULL;
        if (!copied(page->data, start, PAGE))
            return 0;
        page->start = start;
    }
    memcpy(to, page->data + (from - start), size);
    return 1;
}

static uint32_t walk(uint64_t *frames, char *state, int (*get)(struct page *, void *, const char *, size_t))
{
    struct page page;
    char *frame;
    uint32_t count = 0;
    page.start = NULL;
    if (at.chain >= 0) { /* the state itself is there as long as Python is: the main thread's stands in the interpreter's */
        memcpy(&state, state + at.chain, sizeof state);
        if (!state || !get(&page, &frame, state + at.current, sizeof frame))
            return 0;
    } else {
        memcpy(&frame, state + at.current, sizeof frame);
    }
    while (frame && count < DEEPEST) {
        char fields[LONGEST];
        if (!get(&page, fields, frame, span))
            break;
        memcpy(&frames[2 * count], fields + at.code, 8);
        memcpy(&frames[2 * count + 1], fields + at.instruction, 8);
        memcpy(&frame, fields + at.previous, sizeof frame);
        count++;
    }
    return count;
}

static void take_stack(uint32_t correlation, uint64_t word)
{
    uint64_t turn = atomic_load(&head);
    struct entry *one;
    char *state;
    do {
        if (turn - atomic_load(&tail) >= SLOTS) {
            atomic_fetch_add(&lost, 1);
            return;
        }
    } while (!atomic_compare_exchange_weak(&head, &turn, turn + 1));
    one = &ring[turn % SLOTS];
    one->correlation = correlation;
    one->word = word;
    one->thread = own_thread();
    state = this_state();
    one->count = state ? walk(one->frames, state, read_own) : 0;
    one->meanwhile = !one->count;
    if (one->meanwhile && main_state)
        one->count = walk(one->frames, main_state, read_foreign);
    atomic_store_explicit(&one->ready, turn + 1, memory_order_release);
}

/* A call has ended: its record, as CUPTI would make it. */
static void keep(int domain, uint32_t number, const char *data, const struct open_call *call, uint64_t end)
{
    uint64_t turn = atomic_load(&calls_head);
    struct ended *one;
    const uint32_t *status;
    do {
        if (turn - atomic_load(&calls_tail) >= ENDED) {
            atomic_fetch_add(&calls_lost, 1);
            return;
        }
    } while (!atomic_compare_exchange_weak(&calls_head, &turn, turn + 1));
    one = &ended[turn % ENDED];
    memcpy(&status, data + 24, sizeof status);
    one->record = (struct api){domain == 2 ? RUNTIME : DRIVER, number, call->start, end, (uint32_t)process, own_thread(),
                               call->correlation, status ? *status : 0};
    atomic_store_explicit(&one->ready, turn + 1, memory_order_release);
}

/* Of allocations the bytes, their second argument. Of waits for a stream its number plus one, as records of work have it: CUPTI's own records
 * of waits make all launches slower. Of other calls 0: they may have fewer arguments. */
static uint64_t word_of(uint8_t asks, const char *data)
{
    const uint64_t *parameters;
    void *context;
    uint32_t number;
    memcpy(&parameters, data + 16, sizeof parameters);
    if (!parameters)
        return 0;
    if (asks & SIZE)
        return parameters[1];
    memcpy(&context, data + 40, sizeof context);
    if (asks & STREAM && get_stream && !get_stream(context, (void *)parameters[0], !!(asks & PER_THREAD), &number))
        return (uint64_t)number + 1;
    return 0;
}

/* A call begins or ends: CUpti_CallbackFunc.
 *
 * Of calls within others, as of the driver's within the runtime's, the outermost is kept; others if they have a number of their own, by which
 * their work is known.
 */
void tap_called(void *argument, int domain, uint32_t number, const char *data)
{
    struct open_call *mine;
    uint8_t asks = asked[domain & 3][number % CALLS];
    (void)argument;
    if (forked)
        return;
    if (own_part != atomic_load(&part)) {
        own_part = atomic_load(&part);
        depth = 0;
    }
    if (*(const int32_t *)data != 0) { /* callbackSite: CUPTI_API_EXIT */
        if (depth == 1 && atomic_exchange(&leaves, 0)) {
            depth = 0;
            leave();
            return;
        }
        if (depth && --depth < DEEP && domain && (!depth || open_calls[depth].correlation != open_calls[depth - 1].correlation))
            keep(domain, number, data, &open_calls[depth], clock_of_records());
        return;
    }
    if (depth >= DEEP) {
        depth++;
        return;
    }
    mine = &open_calls[depth++];
    mine->correlation = *(const uint32_t *)(data + 64);
    mine->has_stack = depth > 1 && mine[-1].has_stack && mine[-1].correlation == mine->correlation;
    if (asks & STACK && !mine->has_stack) {
        take_stack(mine->correlation, word_of(asks, data));
        mine->has_stack = 1;
    }
    mine->start = depth > 1 && mine[-1].correlation == mine->correlation ? 0 : clock_of_records(); /* the inner one is not kept */
}

/* Have a function called when the next call ends, by which CUPTI leaves the process: it is safe there. */
void tap_leave(void *function)
{
    leave = (uint32_t (*)(void))function;
    atomic_store(&leaves, 1);
}

/* Whether that is over; it is not done any more. */
int tap_left(void)
{
    return !atomic_exchange(&leaves, 0);
}

/* Another part of the recording begins: calls of the one before do not end any more, and its kernels may be others by now. */
void tap_again(void)
{
    atomic_fetch_add(&part, 1);
    memset(names, 0, sizeof names);
    named = 0;
}

/* Wait until there is much to collect, the time is over, or tap_wake was called. Takes no GIL, so a program that has it goes on. */
void tap_wait(uint32_t milliseconds)
{
    const struct timespec look = {0, LOOK * 1000000};
    uint32_t waited;
    for (waited = 0; waited < milliseconds && !atomic_load(&woken); waited += LOOK) {
        if (atomic_load(&head) - atomic_load(&tail) > SLOTS / 4 || atomic_load(&fulls) > POOL / 4 ||
            atomic_load(&calls_head) - atomic_load(&calls_tail) > ENDED / 4)
            return;
        nanosleep(&look, NULL);
    }
}

/* Whether tap_wait is to return at once. */
void tap_wake(int wakes)
{
    atomic_store(&woken, wakes);
}

/* Copy what was collected: correlation, thread, count, meanwhile, word, frames. Returns the bytes written. One thread calls it. */
uint64_t tap_take(char *out, uint64_t room)
{
    uint64_t used = 0, turn = atomic_load(&tail);
    for (;; turn++) {
        struct entry *one = &ring[turn % SLOTS];
        uint64_t size;
        if (atomic_load_explicit(&one->ready, memory_order_acquire) != turn + 1)
            break;
        size = 24 + 16 * (uint64_t)one->count;
        if (used + size > room)
            break;
        memcpy(out + used, &one->correlation, 24);
        memcpy(out + used + 24, one->frames, size - 24);
        used += size;
        atomic_store(&tail, turn + 1);
    }
    return used;
}

/* Copy the records of calls that have ended. Returns the bytes written. One thread calls it. */
uint64_t tap_calls(char *out, uint64_t room)
{
    uint64_t used = 0, turn = atomic_load(&calls_tail);
    for (; used + sizeof(struct api) <= room; turn++) {
        struct ended *one = &ended[turn % ENDED];
        if (atomic_load_explicit(&one->ready, memory_order_acquire) != turn + 1)
            break;
        memcpy(out + used, &one->record, sizeof(struct api));
        used += sizeof(struct api);
        atomic_store(&calls_tail, turn + 1);
    }
    return used;
}

/* CUPTI needs room for records: CUpti_BuffersCallbackRequestFunc. */
void tap_requested(uint8_t **buffer, size_t *size, size_t *most)
{
    pthread_mutex_lock(&lock);
    *buffer = spares ? spare[--spares] : NULL;
    pthread_mutex_unlock(&lock);
    if (!*buffer && !posix_memalign((void **)buffer, 8, BUFFER))
        memset(*buffer, 0, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

/* CUPTI returns a buffer: CUpti_BuffersCallbackCompleteFunc. */
void tap_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t length)
{
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    if (length && !forked && fulls < POOL) {
        filled[fulls].data = buffer;
        filled[fulls++].length = length;
        buffer = NULL;
    } else if (length && !forked) {
        atomic_fetch_add(&dropped, 1);
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* The buffers that were returned, oldest first: pairs of address and length. Returns how many; at most `room`. */
uint32_t tap_filled(uint64_t *out, uint32_t room)
{
    uint32_t count, index;
    pthread_mutex_lock(&lock);
    count = fulls < room ? fulls : room;
    for (index = 0; index < count; index++) {
        out[2 * index] = (uint64_t)filled[index].data;
        out[2 * index + 1] = filled[index].length;
    }
    memmove(filled, filled + count, (fulls - count) * sizeof *filled);
    fulls -= count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Copy of each record what is kept, from an offset on, and note the names of kernels that have not been seen.
 *
 * Stops before a record of a kind whose size is not known, and where the list of names is full. Returns the offset; `used` and `count` grow.
 */
uint64_t tap_pack(const uint8_t *data, const uint64_t span[2], const uint32_t *sizes, const uint32_t *kept, uint8_t *out, uint64_t *used,
                  uint64_t *new_names, uint32_t *count)
{
    uint64_t offset = span[0];
    while (offset < span[1]) {
        uint32_t kind;
        memcpy(&kind, data + offset, sizeof kind);
        if (kind >= KINDS || !sizes[kind])
            break;
        if (kind == KERNEL) {
            uint64_t name, slot;
            memcpy(&name, data + offset + NAME, sizeof name);
            slot = (name >> 3) * 0x9E3779B97F4A7C15u >> 48;
            while (names[slot] && names[slot] != name)
                slot = (slot + 1) % NAMES;
            if (!names[slot]) {
                if (*count == MOST_NEW)
                    break;
                if (named < NAMES / 2) {
                    names[slot] = name;
                    named++;
                }
                new_names[(*count)++] = name;
            }
        }
        memcpy(out + *used, data + offset, kept[kind]);
        *used += kept[kind];
        offset += sizes[kind];
    }
    return offset;
}

/* A buffer has been read: it is lent again. CUPTI wants it empty, and would make it so in the thread of the program. */
void tap_release(uint8_t *buffer)
{
    memset(buffer, 0, BUFFER);
    pthread_mutex_lock(&lock);
    if (spares < 16) {
        spare[spares++] = buffer;
        buffer = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* Calls whose stacks, buffers whose records, and calls whose records found no room. */
void tap_lost(uint64_t out[3])
{
    out[2] = atomic_load(&calls_lost);
    out[0] = atomic_load(&lost);
    out[1] = atomic_load(&dropped);
}
