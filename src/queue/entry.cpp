#include "queue/entry.hpp"

namespace latchkey::queue {
namespace {

AfterPair after_created(ListOutcome list) {
  switch (list) {
    case ListOutcome::kUnanswered: return AfterPair::kWait;
    case ListOutcome::kShowsOwn: return AfterPair::kDecide;
    case ListOutcome::kLacksOwn: return AfterPair::kLost;
    case ListOutcome::kNoNode: return AfterPair::kLost;
    case ListOutcome::kAmbiguous: return AfterPair::kListAgain;
    case ListOutcome::kRefused: return AfterPair::kReportList;
  }
  return AfterPair::kListAgain;
}

}  // namespace

AfterPair after_pair(CreateOutcome create, ListOutcome list) {
  switch (create) {
    case CreateOutcome::kUnanswered: return AfterPair::kWait;
    case CreateOutcome::kOk: return after_created(list);
    case CreateOutcome::kNoNode: return AfterPair::kMakeParents;
    case CreateOutcome::kNodeExists: return AfterPair::kCounterEnded;
    case CreateOutcome::kRefused: return AfterPair::kReportCreate;
    case CreateOutcome::kRolledBack: return AfterPair::kEnterAgain;
    case CreateOutcome::kAmbiguous: return AfterPair::kSearch;
  }
  return AfterPair::kSearch;  // What is not understood may have been carried out (H03).
}

}  // namespace latchkey::queue
