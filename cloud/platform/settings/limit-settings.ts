import { days, duration, wholeNumber, type SettingsTable } from '../../../protocol/model/program-settings.ts'

const MIB = 1024 * 1024
const COUNT = [1, 1_000_000] as const
const BYTES = [1024, 1024 * MIB] as const

const count = (standard: number, describe: string) => wholeNumber(COUNT, standard, describe)
const bytes = (standard: number, describe: string) => wholeNumber(BYTES, standard, describe)

/** Totals and shares of the budgets that callers hold (`platform/limits/budgets.ts`), each of one process. */
export const limitSettings = {
  httpHeldBodyBytes: wholeNumber(
    [MIB, 1024 * MIB],
    8 * MIB,
    'Bytes of JSON bodies that have arrived and are not complete, of all callers together.',
  ),
  httpHeldBodyBytesPerNetwork: bytes(2 * MIB, 'The same, of one network (IPv4 /32, IPv6 /64).'),
  httpHeldBodyBytesPerCredential: bytes(2 * MIB, 'The same, of one user or API key.'),
  httpHeldBodyBytesPerOwner: bytes(4 * MIB, 'The same, of one owner.'),
  uploads: count(100, 'Forms with files that arrive at the same time, of all callers together.'),
  uploadsPerNetwork: count(20, 'The same, of one network.'),
  uploadsPerUser: count(4, 'The same, of one user.'),
  uploadsPerKey: count(10, 'The same, of one API key.'),
  uploadsPerOwner: count(20, 'The same, of one owner.'),
  uploadPatienceMs: duration(
    30_000,
    'Time without a byte after which an upload is refused. It is also the maximum time below UPLOAD_BYTES_PER_SECOND.',
  ),
  uploadBytesPerSecond: count(1024, 'Average number of bytes a second that an upload must bring.'),
  mediaMsPerUser: count(
    2000,
    'Processor time in milliseconds that images and videos of one user take within a minute. A separate thread handles them.',
  ),
  mediaMsPerKey: count(15_000, 'The same, of one API key.'),
  mediaMsPerOwner: count(20_000, 'The same, of one owner.'),
  mediaMsPerNetwork: count(20_000, 'The same, of one network.'),
  streams: count(2000, 'Open event streams and log streams, of all callers together.'),
  streamsPerNetwork: count(500, 'The same, of one network.'),
  streamsPerUser: count(6, 'The same, of one user.'),
  streamsPerKey: count(20, 'The same, of one API key.'),
  streamsPerOwner: count(200, 'The same, of one owner.'),
  storedAnswerBytesPerUser: bytes(
    2 * MIB,
    'Bytes of answers that requests with an Idempotency-Key store within 24 hours, of one user.',
  ),
  storedAnswerBytesPerKey: bytes(64 * MIB, 'The same, of one API key.'),
  storedAnswerBytesPerNetwork: bytes(128 * MIB, 'The same, of one network.'),
  guestsPerMinute: count(20, 'New guests a minute, of one network (IPv4 /32, IPv6 /64).'),
  guestsKeptMs: days(
    'GUESTS_KEPT_DAYS',
    30,
    'Time after its last change after which a guest without any order, payment or points is deleted with its picture.',
  ),
  webhooksPerOwner: count(16, 'Maximum number of webhooks of one owner.'),
  brokerUnsigned: count(
    1000,
    'Maximum number of connections to the embedded broker that have not logged in, of all networks together.',
  ),
  brokerUnsignedPerNetwork: count(20, 'The same, of one network.'),
} satisfies SettingsTable
