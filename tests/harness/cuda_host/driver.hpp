// What the double of the driver keeps: memory, streams and what waits in them, modules, graphs.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

typedef int Status;
typedef uint64_t Address;
typedef void (*Launcher)(void **, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t);

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
       LAUNCH_RESOURCES = 701,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905,
       CAPTURE_IMPLICIT = 906, CAPTURED_EVENT = 907 };

namespace {

const size_t ZONE = 256;
const unsigned char RED = 0xA5, POISON = 0xDB;
const size_t KEPT = size_t(64) << 20;

struct Block { size_t size; int device; };
struct Context { int device; };
struct Function {
    Launcher run;
    const unsigned *sizes;
    const unsigned char *pointers;
    unsigned bound;
    std::string name;
    int shared, device;
    bool unloaded;
};
struct Module { void *library; int device; std::map<std::string, Function *> functions; };
struct Params { Function *func; unsigned grid[3], block[3], shared; void **params; void **extra; void *kern; void *ctx; };
struct Node { Node *origin; Function *func; unsigned grid[3], block[3], shared; std::vector<std::vector<char>> values; std::vector<void *> table; };
struct Graph { std::vector<std::shared_ptr<Node>> nodes; };

// What is captured from a stream on, and from those that wait for its events.
struct Stream;
struct Capture { Graph *graph; Stream *origin; bool strict, broken; std::set<Stream *> open; };

// A piece of work, and what has to be done before.
struct Op {
    std::function<void()> work;
    std::vector<std::shared_ptr<Op>> after;
    bool done;
};
typedef std::shared_ptr<Op> Work;

struct Stream { int device; bool blocking; std::shared_ptr<Capture> capture; Work last; bool asked; };
struct Event {
    int device;
    bool timed;
    Work work;
    std::shared_ptr<std::chrono::steady_clock::time_point> at;
    std::shared_ptr<Capture> capture;
    Stream *from;
};
struct Copy { Work work; const char *host; size_t count; };  // of page-locked memory

std::recursive_mutex guard;
std::map<Address, Block> live;
std::vector<std::pair<Address, Block>> freed;
size_t freed_bytes = 0;
size_t used[8];
size_t limit = size_t(1) << 30;
int devices = 2;
long fail_allocation = -1;
bool noop = false;
long faults = 0;
std::string fault_text, reported;
std::map<std::string, long> counts;
std::map<std::string, long> costs;  // nanoseconds
long passed = 0, done = 0;  // nanoseconds of the host; when the device has nothing left to do
bool refuses_graphs = false;
Context contexts[8];
Stream defaults[8];  // the default stream of each device
std::set<void *> streams, events, modules, functions, graphs;
std::map<const char *, size_t> pinned;
std::vector<Copy> copies;
std::deque<Work> backlog;  // what is not done yet, and some that is
const size_t MOST = 1000;  // as a device does, the double begins when much is waiting
bool lazy = false, initialized = false;
Status sticky = OK;  // what a kernel has done to the context: every call says so from then on
thread_local Context *current = nullptr;

typedef std::lock_guard<std::recursive_mutex> Held;

Status bad(Status code, const std::string &text) {
    fault_text = text;
    return code;
}

void report(const std::string &text) {
    faults++;
    reported = text;
}

// What no right program does.
Status misuse(Status code, const std::string &text) {
    report(text);
    return bad(code, text);
}

bool filled(const unsigned char *from, size_t count, unsigned char with) {
    for (size_t i = 0; i < count; i++)
        if (from[i] != with) return false;
    return true;
}

unsigned char *bytes(Address at) { return reinterpret_cast<unsigned char *>(at); }

void check_zones(Address at, const Block &block) {
    if (!filled(bytes(at) - ZONE, ZONE, RED)) report("written before a block of " + std::to_string(block.size) + " bytes");
    if (!filled(bytes(at) + block.size, ZONE, RED)) report("written behind a block of " + std::to_string(block.size) + " bytes");
}

void release(size_t keep) {
    while (!freed.empty() && freed_bytes > keep) {
        Address at = freed.front().first;
        Block block = freed.front().second;
        if (!filled(bytes(at), block.size, POISON)) report("written after it was freed: " + std::to_string(block.size) + " bytes");
        check_zones(at, block);
        free(bytes(at) - ZONE);
        freed_bytes -= block.size;
        freed.erase(freed.begin());
    }
}

bool inside(Address at, size_t count) {
    if (!count) return true;
    auto found = live.upper_bound(at);
    if (found == live.begin()) return false;
    --found;
    return at + count <= found->first + found->second.size;
}

// Time passes by what calls cost the host and kernels the device, and by nothing else.
void spend(const char *what) { passed += costs[what]; }
void occupy(const char *what) { done = std::max(done, passed) + costs[what]; }
void wait() { passed = std::max(passed, done); }

// -- what waits ------------------------------------------------------------------------------------------------------
void finish(const Work &wanted) {
    std::vector<Work> path{wanted};
    while (!path.empty()) {
        Work one = path.back();
        Work before;
        for (auto &other : one->after)
            if (!other->done) before = other;
        if (!one->done && before) {
            path.push_back(before);
            continue;
        }
        if (!one->done) {
            one->done = true;
            if (one->work) one->work();
            one->work = nullptr;
            one->after.clear();
        }
        path.pop_back();
    }
}

void finish_all() {
    std::deque<Work> waiting;
    waiting.swap(backlog);
    while (!waiting.empty()) {
        finish(waiting.back());
        waiting.pop_back();
    }
    copies.clear();
}

// The stream of a handle, on the current device; null if there is none.
Stream *stream_of(void *handle) {
    if (reinterpret_cast<uintptr_t>(handle) <= 2) {
        Stream *found = &defaults[current->device];
        found->device = current->device;
        found->blocking = true;
        return found;
    }
    return streams.count(handle) ? static_cast<Stream *>(handle) : nullptr;
}

Work put(Stream *s, std::function<void()> work, const Work &before = nullptr) {
    Work made(new Op{std::move(work), {}, false});
    auto follow = [&](const Work &one) { if (one && !one->done) made->after.push_back(one); };
    follow(s->last);
    follow(before);
    if (s == &defaults[s->device]) {
        for (void *other : streams) {
            Stream *o = static_cast<Stream *>(other);
            if (o->blocking && o->device == s->device) follow(o->last);
        }
    } else if (s->blocking) {
        follow(defaults[s->device].last);
    }
    s->last = made;
    backlog.push_back(made);
    if (!lazy || backlog.size() > MOST) finish_all();
    return made;
}

// A call that a capture does not allow; it is of no use from then on.
Status breaks(const std::shared_ptr<Capture> &capture, Status code, const std::string &text) {
    capture->broken = true;
    return bad(code, text);
}

// Calls that may wait for the device: no stream may be captured by a mode that forbids them.
Status unsafe(const char *what) {
    for (void *one : streams) {
        auto &capture = static_cast<Stream *>(one)->capture;
        if (capture && capture->strict) return breaks(capture, CAPTURE_UNSUPPORTED, std::string(what) + " while a stream is captured");
    }
    return OK;
}

// Work for a stream: the default one would wait for those that block, which a capture of one of them cannot follow.
Status implicit(Stream *s) {
    if (s != &defaults[s->device]) return s->capture && s->capture->broken ? bad(CAPTURE_INVALIDATED, "a broken capture") : OK;
    for (void *one : streams) {
        Stream *o = static_cast<Stream *>(one);
        if (o->capture && o->blocking && o->device == s->device)
            return breaks(o->capture, CAPTURE_IMPLICIT, "work in the default stream while one that blocks is captured");
    }
    return OK;
}

std::shared_ptr<Node> record(Function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **params) {
    std::shared_ptr<Node> node(new Node());
    node->func = f;
    memcpy(node->grid, grid, sizeof node->grid);
    memcpy(node->block, block, sizeof node->block);
    node->shared = shared;
    for (int i = 0; f->sizes && f->sizes[i]; i++)
        node->values.emplace_back(static_cast<char *>(params[i]), static_cast<char *>(params[i]) + f->sizes[i]);
    for (auto &value : node->values) node->table.push_back(value.data());
    return node;
}

std::shared_ptr<Node> copy(const std::shared_ptr<Node> &from) {
    auto made = record(from->func, from->grid, from->block, from->shared, from->table.data());
    made->origin = from.get();
    return made;
}

// Whether the pointers that a kernel gets are null or memory of the device.
bool has_memory(const Node &node) {
    const Function *f = node.func;
    for (size_t i = 0; i < node.values.size(); i++) {
        if (!f->pointers[i]) continue;
        Address at;
        memcpy(&at, node.values[i].data(), sizeof at);
        if (!at) continue;
        auto found = live.upper_bound(at);
        bool known = found != live.begin();
        if (known) --found;
        if (!known || at > found->first + found->second.size || found->second.device != f->device) {
            report("kernel " + f->name + ": parameter " + std::to_string(i) + " is no memory of its device");
            return false;
        }
    }
    return true;
}

void run(const std::shared_ptr<Node> &node) {
    Function *f = node->func;
    f->run(node->table.data(), node->grid[0], node->grid[1], node->grid[2], node->block[0], node->block[1], node->block[2],
           node->shared);
}

Status check(const Function *f, const unsigned *grid, const unsigned *block, unsigned shared) {
    if (!functions.count(const_cast<Function *>(f)) || f->unloaded) return misuse(INVALID_HANDLE, "no function");
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2])
        return bad(INVALID_VALUE, "an empty grid or block");
    const size_t threads = size_t(block[0]) * block[1] * block[2];
    if (threads > 1024 || block[2] > 64 || grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535)
        return bad(INVALID_VALUE, "a grid or block too large");
    if (threads > (f->bound ? f->bound : 256))
        return misuse(LAUNCH_RESOURCES, "kernel " + f->name + ": more threads than it is compiled for");
    if (shared > unsigned(f->shared)) return bad(INVALID_VALUE, "more shared memory than was asked for");
    return OK;
}

}  // namespace
