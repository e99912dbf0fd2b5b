/**
 * Advisory locks of PostgreSQL. All sessions of a database share the numbers, so each use has its own number here.
 */

/** One process at a time builds indexes. */
export const INDEX_LOCK = 7_106_119_101_020
/** Every session of the service shares it. The restore of a backup needs it alone. */
export const RUNNING_LOCK = 7_106_119_101_021
/** One process at a time begins the ranges of ids of a cell. */
export const CELL_LOCK = 7_106_119_101_022
/** One process at a time changes the partitions of tables. */
export const PARTITIONS_LOCK = 7_106_119_101_023
/** First of two numbers; the second is the hash of a mail address. Such pairs never equal a single number. */
export const ADDRESS_LOCKS = 7_106_119
