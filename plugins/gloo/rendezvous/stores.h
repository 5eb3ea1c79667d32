// The kinds of stores (job_store.h says what they are for).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/job_store.h"

namespace heddle::rendezvous {

// A key is the file FOLDER/COMMUNICATOR/RANK.KEY.
Status make_folder_store(const std::string& folder, const std::string& communicator, int32_t rank, std::unique_ptr<Store>* store);

// A key is NAME/COMMUNICATOR/RANK/KEY of the server.
struct RedisPlace {
  std::string host;
  int port = 0;
  std::string name;
};
Status make_redis_store(const RedisPlace& place, const std::string& communicator, int32_t rank, std::unique_ptr<Store>* store);

// A key is COMMUNICATOR/KEY of the process.
Status make_pmix_store(const std::string& communicator, int32_t rank, int32_t ranks, std::unique_ptr<Store>* store);

}  // namespace heddle::rendezvous
