// How the ranks of a job come together, whatever earlier runs left in the store and whichever processes die and come again meanwhile.
//
// Rank 0 begins an attempt: it writes a fresh random number A at the first free `leader/k`. Each rank that sees the newest leader writes
// what others need to know of it at the first free `here/A/j`. When all have, rank 0 writes `go/A`, which says for each rank which j
// counts: the newest, since a process that wrote an older one has died and come again. Ranks that wait for `go/A` look for a newer leader
// too, and leave A for it. An attempt that has its `go/A` when a rank first sees it is over for that rank.
//
// Nothing in the store tells a process that has died from one that lives. Of two processes that say they are one rank, the one that counts
// may be either, so that the other waits for a newer attempt if it came later: if the one that counts is dead, the others find that it does
// not answer, and come together again. It fails if it came earlier, and so does a rank 0 that sees a newer leader than itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/job_store.h"

namespace heddle::rendezvous {

// An attempt, as all its ranks know it.
struct Joined {
  std::string attempt;                // 32 hexadecimal digits that no other attempt has
  std::vector<std::string> payloads;  // by rank
};

// For one thread at a time.
class Meeting {
 public:
  // `store`: the one of this rank, which outlives this object; may be null for one rank, which needs none.
  Meeting(Store* store, int32_t rank, int32_t ranks) : store_(store), rank_(rank), ranks_(ranks) {}

  // Waits for an attempt in which all ranks come together, newer than the one that the last call returned: call it again when a connection
  // to one of them could not be made, or has ended. `payload`: what the others need in order to connect to this rank; any bytes. Errors:
  // device (the deadline: which ranks have come and which are missing; another process is this rank; the store failed), invalid (ranks
  // count themselves differently), cancelled.
  Status next(const std::string& payload, const Patience& patience, Joined* joined);

 private:
  struct Leader {
    int64_t number = -1;  // k of leader/k; -1: there is none
    std::string attempt;
    int32_t ranks = 0;
    bool operator==(const Leader&) const = default;
  };
  struct Record {  // here/A/j of a rank
    int64_t number = -1;
    int32_t ranks = 0;
    std::string payload;
  };

  Status lead(const std::string& payload, const Patience& patience, Joined* joined);
  Status begin(int64_t number, const std::string& payload);
  Status all_came(bool* all);
  Status go(Joined* joined);

  Status follow(const std::string& payload, const Patience& patience, Joined* joined);
  Status see(const std::string& payload);
  Status take(const std::string& go, const Patience& patience, Joined* joined, bool* done);

  // Sets the last of the keys `prefix`k of a rank, k = 0, 1, ..., all of which there are: number -1, and no value, if there is none. The
  // search begins after `from`, which is there.
  Status last(int32_t rank, const std::string& prefix, int64_t from, int64_t* number, std::string* value);
  Status newest_leader(Leader* newest);
  Status read_record(int32_t rank, int64_t number, const std::string& text, Record* record) const;
  Status come(const std::string& payload);
  Status ended(const Patience& patience);
  Status damaged(int32_t rank, const std::string& name) const;
  Status other_size(int32_t rank, int32_t ranks) const;

  Store* const store_;
  const int32_t rank_, ranks_;
  Leader leader_;           // of rank 0: its own; of others: the newest that they saw
  int64_t mine_ = -1;       // j of this process in the attempt of leader_; -1: it is not in it
  std::vector<bool> came_;  // of rank 0: by rank, in this attempt
  std::string over_;        // the attempt that this rank can not join any more
  bool left_out_ = false;   // that attempt began with an earlier process of this rank
};

}  // namespace heddle::rendezvous
