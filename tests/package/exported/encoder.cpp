#include <posenc/rotary/pairing.hpp>

posenc::Pairing pairing();
posenc::Pairing pairing() { return posenc::Pairing::half; }
