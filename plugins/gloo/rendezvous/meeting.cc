#include "rendezvous/meeting.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "rendezvous/key_text.h"
#include "shared/ranks/rank_list.h"

namespace heddle::rendezvous {

namespace {

constexpr char leader_prefix[] = "leader/";
std::string here(const std::string& attempt) {
  return "here/" + attempt + "/";
}
std::string go_of(const std::string& attempt) {
  return "go/" + attempt;
}

// Takes the text up to the next space or line off `text`.
std::string_view word(std::string_view* text) {
  const size_t end = text->find_first_of(" \n");
  const std::string_view first = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return first;
}

template <class T>
bool is_number(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

}  // namespace

Status Meeting::next(const std::string& payload, const Patience& patience, Joined* joined) {
  if (rank_ < 0 || rank_ >= ranks_)
    return plugin::invalid("rank " + std::to_string(rank_) + " is none of " + std::to_string(ranks_) + ": they are counted from 0");
  if (ranks_ == 1) {
    *joined = {random_digits(16), {payload}};
    return {};
  }
  return rank_ == 0 ? lead(payload, patience, joined) : follow(payload, patience, joined);
}

Status Meeting::lead(const std::string& payload, const Patience& patience, Joined* joined) {
  const bool again = leader_.number >= 0;
  Pauses pauses(patience);
  for (bool begun = false;;) {
    Leader newest;
    HEDDLE_PLUGIN_CHECK(newest_leader(&newest));
    if ((begun || again) && newest.number >= leader_.number && newest != leader_)
      return {HEDDLE_ERROR_DEVICE,
              "another process says in " + store_->where() +
                  " that it is rank 0 of this job: give each job its own place or name, and each process its own rank"};
    if (!begun || newest != leader_) {  // or the server has restarted, and forgot it
      HEDDLE_PLUGIN_CHECK(begin(newest.number + 1, payload));
      begun = true;
    }
    bool all = false;
    HEDDLE_PLUGIN_CHECK(all_came(&all));
    if (all) return go(joined);
    if (!pauses.pause()) return ended(patience);
  }
}

Status Meeting::begin(int64_t number, const std::string& payload) {
  Leader own{number, random_digits(16), ranks_};
  for (bool written = false;; ++own.number) {
    HEDDLE_PLUGIN_CHECK(store_->set({0, leader_prefix + std::to_string(own.number)}, own.attempt + " " + std::to_string(ranks_), &written));
    if (written) break;
  }
  leader_ = own;
  came_.assign(static_cast<size_t>(ranks_), false);
  return come(payload);
}

Status Meeting::all_came(bool* all) {
  *all = true;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (came_[static_cast<size_t>(rank)]) continue;
    std::string text;
    bool found = false;
    HEDDLE_PLUGIN_CHECK(store_->get({rank, here(leader_.attempt) + "0"}, &text, &found));
    if (!found) {
      *all = false;
      continue;
    }
    Record record;
    HEDDLE_PLUGIN_CHECK(read_record(rank, 0, text, &record));
    if (record.ranks != ranks_) {
      Status status = other_size(rank, record.ranks);
      bool written = false;
      HEDDLE_PLUGIN_CHECK(store_->set({0, go_of(leader_.attempt)}, "no " + status.text, &written));
      return status;
    }
    came_[static_cast<size_t>(rank)] = true;
  }
  return {};
}

Status Meeting::go(Joined* joined) {
  Joined made{leader_.attempt, {}};
  std::string text = "go";
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    Record record;
    std::string newest;
    HEDDLE_PLUGIN_CHECK(last(rank, here(leader_.attempt), 0, &record.number, &newest));
    HEDDLE_PLUGIN_CHECK(read_record(rank, record.number, newest, &record));
    text += " " + std::to_string(record.number);
    made.payloads.push_back(record.payload);
  }
  bool written = false;
  HEDDLE_PLUGIN_CHECK(store_->set({0, go_of(leader_.attempt)}, text, &written));
  *joined = std::move(made);
  return {};
}

Status Meeting::follow(const std::string& payload, const Patience& patience, Joined* joined) {
  left_out_ = false;
  mine_ = -1;  // an earlier call may have come with another payload
  Pauses pauses(patience);
  for (;;) {
    HEDDLE_PLUGIN_CHECK(see(payload));
    if (mine_ >= 0) {
      std::string text;
      bool found = false, done = false;
      HEDDLE_PLUGIN_CHECK(store_->get({0, go_of(leader_.attempt)}, &text, &found));
      if (found) HEDDLE_PLUGIN_CHECK(take(text, patience, joined, &done));
      if (done) return {};
    }
    if (!pauses.pause()) return ended(patience);
  }
}

// Looks for a newer leader, and comes to its attempt unless that is over.
Status Meeting::see(const std::string& payload) {
  Leader newest;
  HEDDLE_PLUGIN_CHECK(newest_leader(&newest));
  if (newest == leader_ && mine_ >= 0) return {};
  leader_ = newest;
  mine_ = -1;
  if (newest.number < 0 || newest.attempt == over_) return {};
  bool is_over = false;
  HEDDLE_PLUGIN_CHECK(store_->has({0, go_of(newest.attempt)}, &is_over));
  if (!is_over)
    return come(payload);  // also if it has other ranks: a living rank 0 answers, and a killed run's leader is left for a newer one
  over_ = newest.attempt;
  left_out_ = true;
  return {};
}

// `done` is set if this process joins the attempt that goes.
Status Meeting::take(const std::string& go, const Patience& patience, Joined* joined, bool* done) {
  std::string_view text = go;
  const std::string_view answer = word(&text);
  over_ = leader_.attempt;
  const int64_t mine = std::exchange(mine_, -1);
  if (answer == "no") return plugin::invalid(std::string(text));
  if (leader_.ranks != ranks_) return other_size(0, leader_.ranks);
  std::vector<int64_t> counted(static_cast<size_t>(ranks_));
  for (int64_t& one : counted)
    if (answer != "go" || !is_number(word(&text), &one)) return damaged(0, go_of(leader_.attempt));
  const int64_t of_this_rank = counted[static_cast<size_t>(rank_)];
  if (of_this_rank > mine)
    return {HEDDLE_ERROR_DEVICE, "another process says in " + store_->where() + " that it is rank " + std::to_string(rank_) +
                                     " of this job: give each process its own rank"};
  left_out_ = of_this_rank < mine;
  if (left_out_) return {};
  Joined made{leader_.attempt, {}};
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    const int64_t number = counted[static_cast<size_t>(rank)];
    std::string there;
    HEDDLE_PLUGIN_CHECK(store_->wait({rank, here(leader_.attempt) + std::to_string(number)}, &there, patience));
    Record record;
    HEDDLE_PLUGIN_CHECK(read_record(rank, number, there, &record));
    made.payloads.push_back(record.payload);
  }
  *joined = std::move(made);
  *done = true;
  return {};
}

Status Meeting::last(int32_t rank, const std::string& prefix, int64_t from, int64_t* number, std::string* value) {
  const auto get = [&](int64_t at, bool* found) { return store_->get({rank, prefix + std::to_string(at)}, value, found); };
  int64_t there = from, missing = -1;
  bool found = false;
  if (from >= 0) HEDDLE_PLUGIN_CHECK(get(from, &found));
  for (int64_t step = 1; missing < 0; step *= 2) {
    HEDDLE_PLUGIN_CHECK(get(there + step, &found));
    (found ? there : missing) = there + step;
  }
  while (missing - there > 1) {
    const int64_t middle = there + (missing - there) / 2;
    HEDDLE_PLUGIN_CHECK(get(middle, &found));
    (found ? there : missing) = middle;
  }
  *number = there;
  return {};
}

Status Meeting::newest_leader(Leader* newest) {
  const auto parse = [](std::string_view text, Leader* leader) {
    leader->attempt = word(&text);
    return leader->attempt.size() == 32 && is_number(text, &leader->ranks);
  };
  *newest = {};
  std::string text;
  bool found = false;
  if (leader_.number >= 0) {  // it may be gone, and another be there: the server has restarted
    const std::string name = leader_prefix + std::to_string(leader_.number);
    HEDDLE_PLUGIN_CHECK(store_->get({0, name}, &text, &found));
    newest->number = leader_.number;
    if (found && !parse(text, newest)) return damaged(0, name);
    if (!found || *newest != leader_) *newest = {};
  }
  HEDDLE_PLUGIN_CHECK(last(0, leader_prefix, newest->number, &newest->number, &text));
  if (newest->number >= 0 && !parse(text, newest)) return damaged(0, leader_prefix + std::to_string(newest->number));
  return {};
}

Status Meeting::come(const std::string& payload) {
  const std::string prefix = here(leader_.attempt);
  std::string ignored;
  int64_t number = -1;
  HEDDLE_PLUGIN_CHECK(last(rank_, prefix, -1, &number, &ignored));
  // A store that wrote it twice (redis_store.cc) knows by the random number that it was this process.
  const std::string record = std::to_string(ranks_) + " " + random_digits(8) + "\n" + payload;
  for (bool written = false; !written;) HEDDLE_PLUGIN_CHECK(store_->set({rank_, prefix + std::to_string(++number)}, record, &written));
  mine_ = number;
  return {};
}

Status Meeting::read_record(int32_t rank, int64_t number, const std::string& text, Record* record) const {
  std::string_view rest = text;
  record->number = number;
  if (!is_number(word(&rest), &record->ranks) || word(&rest).size() != 16)
    return damaged(rank, here(leader_.attempt) + std::to_string(number));
  record->payload = rest;
  return {};
}

Status Meeting::other_size(int32_t rank, int32_t ranks) const {
  return plugin::invalid("rank " + std::to_string(rank) + " says in " + store_->where() + " that there are " + std::to_string(ranks) +
                         " ranks, and rank " + std::to_string(rank_) + " that there are " + std::to_string(ranks_) +
                         ": start all processes with the same number");
}

Status Meeting::damaged(int32_t rank, const std::string& name) const {
  return {HEDDLE_ERROR_DEVICE, "'" + name + "' of rank " + std::to_string(rank) + " in " + store_->where() +
                                   " is not what this program writes: use another place or name, or remove what is there"};
}

// The end of a call that waited in vain.
Status Meeting::ended(const Patience& patience) {
  if (patience.cancelled && patience.cancelled()) return plugin::cancelled();
  const std::string where = store_->where();
  const auto late = [](const std::string& text) { return Status(HEDDLE_ERROR_DEVICE, text); };
  if (leader_.number < 0)
    return late("rank 0 has not come to " + where + " in time, and rank " + std::to_string(rank_) +
                " has: start it, with the same rendezvous, or wait longer (--timeout)");
  if (mine_ < 0) {
    const std::string began = "rank 0 has begun no other attempt in " + where + " in time";
    if (!left_out_) return late(began + ": rank 0 is missing; start it again, or wait longer (--timeout)");
    return late(began + ", and its last one, " + leader_.attempt +
                ", went without this process: rank 0 is missing, or another process is rank " + std::to_string(rank_) +
                "; start all ranks, each once, or wait longer (--timeout)");
  }
  std::vector<int32_t> here_are, missing;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    bool found = false;
    HEDDLE_PLUGIN_CHECK(store_->has({rank, here(leader_.attempt) + "0"}, &found));
    (found ? here_are : missing).push_back(rank);
  }
  if (leader_.ranks != ranks_) {
    Status status = other_size(0, leader_.ranks);
    status.code = HEDDLE_ERROR_DEVICE;  // it may be what a killed run left
    status.text += ", or start rank 0";
    return status;
  }
  if (missing.empty()) return late("rank 0 came to " + where + ", and all others, but it does not go on: it is missing; start it again");
  return late("of " + std::to_string(ranks_) + " ranks only " + operators::rank_list(here_are) + " came to " + where +
              " in time; missing: " + operators::rank_list(missing) + "; start them, with the same rendezvous, or wait longer (--timeout)");
}

}  // namespace heddle::rendezvous
