static_assert(__cplusplus > 202002L, "the consumer asked for C++23");
