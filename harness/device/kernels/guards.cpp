// What the harness itself does on a device: fills the surroundings of buffers with canaries and
// outputs with poison before a case, and looks what became of them after it.
//
// A launch does a list of jobs: block (x, y) is the x-th of the blocks of job y. Each block writes a
// result of its own; the host adds them up. Offsets and patterns are those of poison.rs, layout.rs
// and snapshot.rs, and a test holds both sides to the same answers.
#include "portable.hpp"

enum JobKind : u32 {
  CANARY = 0,   // bytes that nobody may touch
  PATTERN = 1,  // a pattern from the first byte on: poison
  SUM = 2,      // bytes that nobody may change: a sum that tells
  SCRATCH = 3,  // a pattern that anybody may change
};

constexpr u32 RANK = 8;

// An axis of a view, from the longest stride down. Lengths in elements.
struct Axis {
  u64 extent, stride;
  u64 weight;  // of the position in the logical row-major index
};

struct Job {
  u64 address;  // of the first byte
  u64 bytes;
  u64 origin;   // CANARY: the first byte's offset in the arena
  u64 pattern;  // PATTERN, SCRATCH: eight bytes of it
  u32 kind;
  u32 element;  // PATTERN: bytes per element
  u32 rank;     // PATTERN: axes in use; 0 where the elements lie in the order of their indices
  u32 gaps;     // PATTERN: not every place holds an element
  u32 blocks;
  u32 result;  // of the first block
  Axis axes[RANK];
};

// What a block saw. CANARY: touched bytes, counted from the first of the job. PATTERN: elements
// that still hold it, by logical index, and touched bytes between elements. SUM: the sum in count.
struct Seen {
  u64 count, first, last;
  u64 gap_count, gap_first, gap_last;
};

struct GuardParams {
  const Job *jobs;
  Seen *seen;
};

DNN_FN u8 canary(u64 offset) {
  const u64 mixed = (offset ^ 0x5EEDull) * 0x9E3779B97F4A7C15ull;
  return (u8)(1u + (u32)(mixed >> 56) % 0xFEu);
}

DNN_FN u8 pattern_byte(const Job &job, u64 at) { return (u8)(job.pattern >> (at % 8 * 8)); }

// The bytes of a job are treated as aligned words, the first and the last perhaps in part.
DNN_FN u64 lead_of(const Job &job) { return job.address % 8; }
DNN_FN u64 words_of(const Job &job) { return (lead_of(job) + job.bytes + 7) / 8; }

DNN_FN void fill_word(const Job &job, u64 word) {
  const u64 lead = lead_of(job);
  u8 *base = reinterpret_cast<u8 *>(job.address);
  if (word * 8 >= lead && word * 8 + 8 <= lead + job.bytes) {
    const u64 turned = lead == 0 ? job.pattern : job.pattern << (lead * 8) | job.pattern >> (64 - lead * 8);
    *reinterpret_cast<u64 *>(job.address - lead + word * 8) = turned;
    return;
  }
  for (u64 i = 0; i < 8; ++i) {
    const u64 at = word * 8 + i;
    if (at >= lead && at < lead + job.bytes) base[at - lead] = pattern_byte(job, at - lead);
  }
}

DNN_FN void fill_block(const GuardParams &p, Block block) {
  const Job &job = p.jobs[block.y];
  if (block.x >= job.blocks || job.kind == SUM) return;
  const u64 step = (u64)job.blocks * DNN_BLOCK;
  DNN_THREADS(t) {
    const u64 mine = (u64)block.x * DNN_BLOCK + t;
    if (job.kind == CANARY) {
      u8 *base = reinterpret_cast<u8 *>(job.address);
      for (u64 i = mine; i < job.bytes; i += step) base[i] = canary(job.origin + i);
    } else {
      const u64 words = words_of(job);
      for (u64 word = mine; word < words; word += step) fill_word(job, word);
    }
  }
}

constexpr u64 NEVER = ~0ull;

DNN_FN Seen nothing() { return {0, NEVER, 0, 0, NEVER, 0}; }
DNN_FN u64 less(u64 a, u64 b) { return a < b ? a : b; }
DNN_FN u64 more(u64 a, u64 b) { return a > b ? a : b; }
DNN_FN void note(u64 &count, u64 &first, u64 &last, u64 at) {
  count += 1;
  first = less(first, at);
  last = more(last, at);
}

// `size` bytes at an address of any alignment, the first in the lowest place.
DNN_FN u64 bits_at(u64 address, u32 size) {
  if (address % size == 0) {
    switch (size) {
      case 1: return *reinterpret_cast<const u8 *>(address);
      case 2: return *reinterpret_cast<const u16 *>(address);
      case 4: return *reinterpret_cast<const u32 *>(address);
      case 8: return *reinterpret_cast<const u64 *>(address);
      default: break;
    }
  }
  u64 bits = 0;
  for (u32 i = 0; i < size; ++i) bits |= (u64)reinterpret_cast<const u8 *>(address)[i] << (8 * i);
  return bits;
}

// Whether an element lies at `place` (in elements), and its logical index.
DNN_FN bool element_of(const Job &job, u64 place, u64 &index) {
  index = place;
  if (job.rank == 0) return true;
  index = 0;
  for (u32 a = 0; a < job.rank; ++a) {
    const Axis &axis = job.axes[a];
    const u64 digit = less(place / axis.stride, axis.extent - 1);
    place -= digit * axis.stride;
    index += digit * axis.weight;
  }
  return place == 0;
}

DNN_FN void look_at_pattern(const Job &job, u64 place, Seen &seen) {
  const u64 at = place * job.element;
  const u64 left = job.bytes - at;
  const u32 size = left < job.element ? (u32)left : job.element;
  const u64 bits = bits_at(job.address + at, size);
  const u64 mask = size == 8 ? ~0ull : (1ull << (8 * size)) - 1;
  const bool kept = bits == (job.pattern & mask);
  if (kept) {
    u64 index;
    if (size == job.element && element_of(job, place, index))
      note(seen.count, seen.first, seen.last, index);
    return;
  }
  u64 index;
  if (!job.gaps || (size == job.element && element_of(job, place, index))) return;
  for (u32 i = 0; i < size; ++i) {
    if ((u8)(bits >> (8 * i)) != pattern_byte(job, i))
      note(seen.gap_count, seen.gap_first, seen.gap_last, at + i);
  }
}

// Each step can be undone, so that a word that changes alone always changes the sum.
DNN_FN u64 mixed(u64 word, u64 at) {
  u64 v = word + at * 0x9E3779B97F4A7C15ull;
  v = (v ^ v >> 32) * 0xD6E8FEB86659FD93ull;
  v = (v ^ v >> 32) * 0xD6E8FEB86659FD93ull;
  return v ^ v >> 32;
}

DNN_FN void check_block(const GuardParams &p, Block block) {
  DNN_SHARED Seen all[DNN_BLOCK];
  const Job &job = p.jobs[block.y];
  if (block.x >= job.blocks) return;
  const u64 step = (u64)job.blocks * DNN_BLOCK;
  DNN_THREADS(t) {
    const u64 mine = (u64)block.x * DNN_BLOCK + t;
    Seen seen = nothing();
    if (job.kind == CANARY) {
      const u8 *base = reinterpret_cast<const u8 *>(job.address);
      for (u64 i = mine; i < job.bytes; i += step) {
        if (base[i] != canary(job.origin + i)) note(seen.count, seen.first, seen.last, i);
      }
    } else if (job.kind == PATTERN) {
      const u64 places = (job.bytes + job.element - 1) / job.element;
      for (u64 place = mine; place < places; place += step) look_at_pattern(job, place, seen);
    } else if (job.kind == SUM) {
      const u64 words = (job.bytes + 7) / 8;
      for (u64 word = mine; word < words; word += step) {
        const u32 size = (u32)less(job.bytes - word * 8, 8);
        seen.count += mixed(bits_at(job.address + word * 8, size), word + 1);
      }
    }
    all[t] = seen;
  }
  DNN_BARRIER();
  for (u32 half = DNN_BLOCK / 2; half > 0; half /= 2) {
    DNN_THREADS(t) {
      if (t < half) {
        const Seen other = all[t + half];
        Seen &seen = all[t];
        seen = {seen.count + other.count,         less(seen.first, other.first),
                more(seen.last, other.last),      seen.gap_count + other.gap_count,
                less(seen.gap_first, other.gap_first), more(seen.gap_last, other.gap_last)};
      }
    }
    DNN_BARRIER();
  }
  DNN_THREADS(t) {
    if (t == 0) p.seen[job.result + block.x] = all[0];
  }
}

DNN_KERNEL(dnn_guard_fill, GuardParams, fill_block)
DNN_KERNEL(dnn_guard_check, GuardParams, check_block)

#if !defined(DNN_GPU)
#include "host_table.hpp"

extern "C" const HostKernel *dnn_guard_table() {
  static const HostKernel table[] = {
      {"dnn_guard_fill", sizeof(GuardParams), dnn_guard_fill},
      {"dnn_guard_check", sizeof(GuardParams), dnn_guard_check},
      {nullptr, 0, nullptr},
  };
  return table;
}
#endif
