#include <posenc/rotary/pairing.hpp>

posenc::Pairing pairing();  // of the library `encoder`

int main() { return pairing() == posenc::Pairing::half ? 0 : 1; }
