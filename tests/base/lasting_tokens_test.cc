#include "base/lasting_tokens.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(LastingTokens, AreNeverEqualAndStandForNothingOnceTheNextIsGiven) {
  int owner = 0;
  TokenSlot& slot = TokenSlot::take(&owner, "operator \"a\"");
  std::set<const void*> given;
  const void* before = nullptr;
  for (int run = 0; run < 1000; ++run) {
    const void* const token = slot.renew(TokenSlot::under_way);
    EXPECT_TRUE(TokenSlot::is_token(token));
    EXPECT_FALSE(TokenSlot::is_token(&owner));
    EXPECT_TRUE(given.insert(token).second);
    EXPECT_EQ(TokenSlot::of(token), &slot);
    EXPECT_EQ(TokenSlot::object_of(token), &owner);
    if (before) {
      EXPECT_EQ(TokenSlot::object_of(before), nullptr);
      EXPECT_FALSE(slot.claim(before)) << "a step of another run";
    }
    EXPECT_TRUE(slot.claim(token));
    EXPECT_FALSE(slot.claim(token)) << "twice";
    before = token;
  }
  slot.give_back();
}

TEST(LastingTokens, StandForNothingWhenTheirOwnerIsGoneAndTellWhoItWas) {
  int owner = 0, next = 0;
  TokenSlot* slot = &TokenSlot::take(&owner, "operator \"first\"");
  const void* const token = slot->renew(TokenSlot::under_way);
  slot->give_back();
  EXPECT_EQ(TokenSlot::object_of(token), nullptr);
  EXPECT_FALSE(slot->claim(token));
  EXPECT_EQ(slot->owner_name(token), "operator \"first\"");
  // Whichever operator has the slot next, the token does not refer to it.
  std::set<TokenSlot*> taken;
  while (taken.insert(&TokenSlot::take(&next, "operator \"second\"")).second && !taken.contains(slot)) {
  }
  const void* const other = slot->renew(TokenSlot::under_way);
  EXPECT_NE(other, token);
  EXPECT_FALSE(slot->claim(token));
  EXPECT_EQ(TokenSlot::object_of(other), &next);
  EXPECT_EQ(slot->owner_name(token), "operator \"first\"");
  EXPECT_EQ(slot->owner_name(other), "operator \"second\"");
  for (TokenSlot* one : taken) one->give_back();
}

// Several threads complete one step at once, with its token and with tokens of earlier runs: exactly one succeeds, and sees the object that
// the token was given for.
TEST(LastingTokens, OneOfSeveralThreadsClaimsAStep) {
  constexpr int threads = 4, runs = 500;
  int owner = 0;
  TokenSlot& slot = TokenSlot::take(&owner, "operator \"raced\"");
  std::vector<const void*> tokens(runs);
  std::vector<std::atomic<int>> claims(runs);
  std::barrier begin(threads + 1), end(threads + 1);
  std::vector<std::thread> racers;
  for (int i = 0; i < threads; ++i)
    racers.emplace_back([&] {
      for (size_t run = 0; run < runs; ++run) {
        begin.arrive_and_wait();
        for (size_t other = run < 3 ? 0 : run - 3; other <= run; ++other) {
          TokenSlot* const found = TokenSlot::of(tokens[other]);
          if (found != &slot) {
            ADD_FAILURE() << "the token of run " << other << " is of another slot";
          } else if (found->claim(tokens[other])) {
            EXPECT_EQ(other, run);
            EXPECT_EQ(TokenSlot::object_of(tokens[other]), &owner);
            ++claims[other];
          } else {
            found->count_refusal();
            EXPECT_EQ(found->owner_name(tokens[other]), "operator \"raced\"");
          }
        }
        end.arrive_and_wait();
      }
    });
  for (size_t run = 0; run < runs; ++run) {
    tokens[run] = slot.renew(TokenSlot::under_way);
    begin.arrive_and_wait();
    end.arrive_and_wait();
    EXPECT_EQ(claims[run], 1);
  }
  for (std::thread& racer : racers) racer.join();
  EXPECT_EQ(slot.refusals(), uint32_t{threads * (4 * runs - 6) - runs});
  slot.give_back();
}

// A number that no slot has given is not a token, wherever it points.
TEST(LastingTokens, WhatWasNeverGivenIsNothing) {
  const auto* const invented = reinterpret_cast<const void*>(~uint64_t{0});
  EXPECT_TRUE(TokenSlot::is_token(invented));
  EXPECT_EQ(TokenSlot::object_of(invented), nullptr);
}

}  // namespace
}  // namespace heddle
