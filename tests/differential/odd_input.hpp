#pragma once

#include <string>
#include <vector>

#include "differential/step.hpp"

/// What the generator picks from when it does not ask for something ordinary.
namespace latchkey::differential {

extern const std::vector<std::string> kSystemPaths;
extern const std::vector<std::string> kOddPaths;
using AclChoices = std::vector<std::vector<wire::WireAcl>>;
extern const AclChoices kOpenAcls;
/// Everybody may read.
extern const AclChoices kReadableAcls;
extern const AclChoices kPrivateAcls;
/// Refused with InvalidACL.
extern const AclChoices kBadAcls;
extern const std::vector<std::string> kQuotaLimits;
/// Refused with AuthFailed.
extern const std::vector<wire::AuthPacket> kOddAuths;
extern const std::vector<std::string> kBadFrames;
extern const std::vector<std::string> kGarbage;
extern const std::vector<wire::Op> kGarbageOps;
/// A well-formed body of one.
extern const std::string kReconfig;

}  // namespace latchkey::differential
