#include "sim/hazards.hpp"

#include <algorithm>

namespace latchkey::sim {
namespace {

constexpr Reach kLuck = Reach::kLuck;
constexpr Reach kScript = Reach::kScript;
constexpr Reach kElsewhere = Reach::kElsewhere;

constexpr std::array<Hazard, kHazards> kTable = {{
    {1, kLuck, "a create was carried out and its answer never arrived"},
    {2, kLuck,
     "a create in doubt was carried out after its session attached again, or unknown there"},
    {3, kLuck, "a client gave up a silent connection with a write on its way"},
    {4, kLuck, "a process entered a queue in which an entry of its former session stood"},
    {5, kLuck, "an entry went, not by its owner, before the owner had seen a list with it"},
    {6, kLuck, "a caller gave up with its create unanswered"},
    {7, kLuck, "two entries of one session in a queue"},
    {8, kScript, "a stranger's node with our guid"},
    {9, kLuck, "a lease ran out by its clock and the session lived"},
    {10, kLuck, "an answer was under way for a quarter of the time-out"},
    {11, kLuck, "a follower answered for a session that its leader had ended"},
    {12, kLuck, "a session ran out or was ended with an entry that waited"},
    {13, kLuck, "a holder's session ended while the holder was paused"},
    {14, kLuck, "a holder's clock jumped, stood still, or its wall clock jumped"},
    {15, kLuck, "a session was granted another time-out when it attached again"},
    {16, kLuck, "a directory was made anew after holds in it"},
    {17, kElsewhere, "integration: MutexTest.H16_H17; the store of tests/faults"},
    {18, kLuck, "two readers held together"},
    {19, kScript, "a server restored from an old copy of its disk"},
    {20, kScript, "a server without its data"},
    {21, kLuck, "a delete whose answer never arrived"},
    {22, kLuck, "a session ended with a delete unanswered"},
    {23, kLuck, "a release without a connection, or after a loss"},
    {24, kLuck, "a second release after the next grant"},
    {25, kLuck, "a session let go while it was not connected"},
    {26, kLuck, "a watch was asked for on a node that had gone"},
    {27, kLuck, "one in the middle of a queue went while the first stayed"},
    {28, kLuck, "as H26; watches are counted in the end"},
    {29, kLuck, "a caller gave up while one that it had watched stayed"},
    {30, kLuck, "an event was sent for a watch whose removal was under way"},
    {31, kLuck, "an event followed before the answer that armed its watch had arrived"},
    {32, kLuck, "watches were set again at a server that lagged"},
    {33, kLuck, "one change woke three or more"},
    {34, kLuck, "somebody changed the data of an entry that was watched"},
    {35, kLuck, "a number near the counter's end was given"},
    {36, kLuck, "an entry whose name sorts before an older one's"},
    {37, kLuck, "a foreign child in a lock's directory"},
    {38, kElsewhere, "differential: Differential.H93 compares every Stat"},
    {39, kLuck, "a create in a directory that was not there"},
    {40, kLuck, "a lock's directory was removed"},
    {41, kElsewhere, "unit: PathTest; differential"},
    {42, kLuck, "a writer left a queue in which a reader and then a writer waited"},
    {43, kLuck, "a reader arrived behind a writer that waited for readers"},
    {44, kLuck, "a writer became a reader with a writer behind it"},
    {45, kLuck, "a reader that was not the first left before a writer that waited"},
    {46, kLuck, "permits were asked for while all were taken"},
    {47, kLuck, "permits came back, not the newest, while somebody waited"},
    {48, kLuck, "a size was changed while permits were out"},
    {49, kLuck, "a multi-lock was first in one queue and not in another"},
    {50, kLuck, "a caller gave up when its entry was the first"},
    {51, kLuck, "a caller gave up without a connection"},
    {52, kLuck, "a lease was destroyed without a connection, or after its loss"},
    {53, kElsewhere, "integration: SessionProcess.H53, Fork.H53"},
    {54, kElsewhere, "integration: SessionProcess.H54"},
    {55, kElsewhere, "integration and exploration: RecursiveMutexTest.H55, WaitingTest.H55"},
    {56, kElsewhere, "integration: SessionCallbacks.H56, LeaseTest.H56"},
    {57, kElsewhere, "integration: SessionProcess.H57"},
    {58, kLuck, "a session was let go with requests unanswered"},
    {59, kLuck, "a session was let go by its own callback"},
    {60, kElsewhere, "integration: SessionCallbacks.H60; World.RefusesABlockingCall"},
    {61, kElsewhere, "integration: SessionTest.H30_H61"},
    {62, kLuck, "a watch had fired when its removal arrived"},
    {63, kElsewhere, "unit and integration: MachineWatch.H63, SessionTest.H63"},
    {64, kElsewhere, "unit: MachineRequests.H64"},
    {65, kElsewhere, "unit, fuzz and integration: MachineBadFrames.H65, SessionHostile"},
    {66, kLuck, "a session that was over was told so"},
    {67, kElsewhere, "integration: SessionHostile.H67"},
    {68, kElsewhere, "integration: SessionResolver.H68"},
    {69, kElsewhere, "cannot happen: the C client is not used"},
    {70, kLuck, "a lock was passed on inside a session while a stranger waited"},
    {71, kLuck, "a create was answered and the list behind it was not"},
    {72, kLuck, "the only one ahead went"},
    {73, kLuck, "a holder vanished and the next was granted"},
    {74, kLuck, "a leader was found sick"},
    {75, kLuck, "a leader that had led queued again"},
    {76, kLuck, "an observer at a server that lagged was shown a leader"},
    {77, kLuck, "a record was stored in part"},
    {78, kLuck, "a read was answered while a write was not durable"},
    {79, kLuck, "a restart from a snapshot and records behind it"},
    {80, kLuck, "a record was stored and nobody was told before the crash"},
    {81, kLuck, "a server was down for longer than a time-out"},
    {82, kLuck, "a record was decided and lost in a crash"},
    {83, kLuck, "the disk was full"},
    {84, kLuck, "a sync failed"},
    {85, kLuck, "the server or its disk stood still"},
    {86, kLuck, "the server's wall clock jumped"},
    {87, kElsewhere, "unit and integration: ServiceTest.H87, ServerSecret.H87"},
    {88, kLuck, "a session attached again with requests of its old connection on their way"},
    {89, kElsewhere, "unit and fuzz: ServiceLimitsTest.H89, FrameSplitter.H89"},
    {90, kElsewhere, "unit and integration: SlowReaderTest.H90, ServerFlood.H90"},
    {91, kLuck, "a watch that was set again fired for the past"},
    {92, kElsewhere, "unit and differential: Permits.H92, DifferentialPermissions.H92"},
    {93, kLuck, "a session took several nodes with it, or another hand removed one"},
    {94, kElsewhere, "unit and integration: Words.H94, FileJournal.H94, ServerFlood.H94"},
    {95, kElsewhere, "the command line"},
    {96, kElsewhere, "the command line"},
    {97, kElsewhere, "the command line"},
    {98, kElsewhere, "the command line"},
    {99, kElsewhere, "the command line"},
    {100, kElsewhere, "the command line"},
    {101, kElsewhere, "the command line"},
}};

}  // namespace

const std::array<Hazard, kHazards>& hazards() { return kTable; }

std::size_t Sightings::reached() const {
  return static_cast<std::size_t>(std::ranges::count_if(kTable, [this](const Hazard& one) {
    return one.reach == Reach::kLuck && of(one.number) > 0;
  }));
}

std::size_t Sightings::reachable() {
  return static_cast<std::size_t>(std::ranges::count(kTable, Reach::kLuck, &Hazard::reach));
}

}  // namespace latchkey::sim
