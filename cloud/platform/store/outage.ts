/** PostgreSQL's classes of states in which it is not the statement's fault: the connection, resources, the operator, I/O. */
const POSTGRES_CLASSES = ['08', '53', '57', '58']
/** It has become a standby, it gave up waiting for a lock. */
const POSTGRES_CODES = ['25006', '55P03']
/** Of the system, where a server is away. */
const SYSTEM_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]
/** The disk is full, cannot be read or written, another process holds the file too long, the file is damaged. */
const SQLITE = /^SQLITE_(FULL|IOERR|BUSY|CANTOPEN|READONLY|CORRUPT|NOTADB)/
/** What `pg` says without a code. */
const ENDED =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying)/

/** Whether an error says that the database is out of reach or cannot store anything now: the call may succeed later. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === '') return ENDED.test(error.message)
  if (SQLITE.test(code) || SYSTEM_CODES.includes(code) || POSTGRES_CODES.includes(code)) return true
  return code.length === 5 && POSTGRES_CLASSES.includes(code.slice(0, 2))
}

/** What an operator is told where the database cannot be opened at the start; undefined for faults of our own. */
export function storeProblem(error: unknown, databaseUrl: string): string | undefined {
  if (!isOutage(error) || !(error instanceof Error)) return undefined
  const where = databaseUrl.startsWith('sqlite:') ? databaseUrl.slice('sqlite:'.length) : hostOf(databaseUrl)
  const isDamaged = 'code' in error && /^SQLITE_(CORRUPT|NOTADB)/.test(String(error.code))
  return isDamaged
    ? `DATABASE_URL: ${where} is damaged (${error.message}): put a backup of it in its place, without -wal and -shm beside it`
    : `DATABASE_URL: ${where} cannot be used: ${reasonOf(error)}`
}

/** Of a name with several addresses, why each was out of reach. */
const reasonOf = (error: Error): string =>
  error instanceof AggregateError
    ? error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
    : error.message

/** Without user and password. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'the database')
