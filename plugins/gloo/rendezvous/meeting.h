// How the ranks of a job come together, whatever earlier runs left in the store and whichever processes die and come again meanwhile.
//
// Rank 0 begins an attempt: it writes a fresh random number A at the first free `leader/k`. Each rank that sees the newest leader writes
// what others need to know of it at the first free `here/A/j`. When all have, rank 0 writes `go/A`, which says for each rank which j
// counts: the newest, since a process that wrote an older one has died and come again. Ranks that wait for `go/A` look for a newer leader
// too, and leave A for it. An attempt that has its `go/A` when a rank first sees it is over for that rank.
//
// Which of two living processes of one rank is wrong is not known. The one that is left out waits for another attempt if it came later than
// the one that counts, which may be dead (the others will find that it does not answer, and come together again), and fails if it came
// earlier. Rank 0 fails when it sees a newer leader than itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/job_store.h"

namespace heddle::rendezvous {

// What all ranks of an attempt know alike.
struct Joined {
  std::string attempt;                // 32 hexadecimal digits that no other attempt has
  std::vector<std::string> payloads;  // by rank
};

// One thread at a time.
class Meeting {
 public:
  // `store`: of this rank, with more life than this object; may be null for one rank, which needs none.
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
  Status lead(const std::string& payload, const Patience& patience, Joined* joined);
  Status follow(const std::string& payload, const Patience& patience, Joined* joined);
  Status begin();
  Status look(Leader* newest);
  Status read_leader(int64_t number, Leader* leader, bool* found);
  Status come(const std::string& payload, const Leader& leader, int64_t* mine);
  Status all_came(std::vector<int64_t>* counted, std::vector<std::string>* payloads, bool* all);
  Status take(const std::string& go, const Leader& leader, int64_t mine, const Patience& patience, Joined* joined, bool* left_out);
  Status ended(const Patience& patience, const Leader& leader);
  std::string place() const;

  Store* const store_;
  const int32_t rank_, ranks_;
  Leader leader_;          // of rank 0: its own attempt; of others: the newest that they saw
  std::string over_;       // the attempt that this rank can not join any more
  bool left_out_ = false;  // the last attempt went without this process
};

}  // namespace heddle::rendezvous
