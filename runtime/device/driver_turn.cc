#include "device/driver_turn.h"

namespace heddle {
namespace {

FairSharedMutex& turns() {
  static FairSharedMutex& of_the_process = *new FairSharedMutex();  // devices may be closed while the process ends
  return of_the_process;
}

}  // namespace

DriverTurn::DriverTurn(For what) {
  hold_.enter(turns(), what == For::group ? FairSharedMutex::Use::alone : FairSharedMutex::Use::shared);
}

}  // namespace heddle
