import { PartUnavailable } from '../unavailable.ts'
import { SchemaRefused } from './schema-check.ts'

/** PostgreSQL's classes of states in which it is not the statement's fault: the connection, resources, the operator, I/O. */
const POSTGRES_CLASSES = ['08', '53', '57', '58']
/** It has become a standby, it gave up waiting for a lock, its files are damaged. */
const POSTGRES_CODES = ['25006', '55P03', 'XX001', 'XX002']
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
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying|timeout expired|Query read timeout)/

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : '')

/** Whether the database or another part is out of reach, or cannot store anything now: the call may succeed later. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof PartUnavailable) return true
  const code = codeOf(error)
  if (code === '') return ENDED.test(error.message)
  if (SQLITE.test(code) || SYSTEM_CODES.includes(code) || POSTGRES_CODES.includes(code)) return true
  return code.length === 5 && POSTGRES_CLASSES.includes(code.slice(0, 2))
}

/** Whether a statement has waited too long for what others have locked: another row may be free. */
export const isLockedOut = (error: unknown): boolean => error instanceof Error && codeOf(error) === '55P03'

type Outage = 'full' | 'damaged' | 'locked' | 'silent' | 'away'

/** What each means to an operator. */
const sentences: Record<Outage, string> = {
  full: 'the disk of the database is full: calls that write are answered 503 until there is room',
  damaged: 'the database is damaged: stop the service and put a backup in its place',
  locked: 'others keep the database locked: calls that need what they have locked are answered 503',
  silent: 'the database does not answer in time: calls are answered 503 until it does',
  away: 'the database is out of reach: calls are answered 503 until it is back',
}

function outageOf(error: Error): Outage {
  const code = codeOf(error)
  if (code === 'SQLITE_FULL' || code === '53100') return 'full'
  if (/^(SQLITE_(CORRUPT|NOTADB)|XX00[12]$)/.test(code)) return 'damaged'
  if (code.startsWith('SQLITE_BUSY') || code === '55P03') return 'locked'
  if (code === '57014' || /^(timeout|Query read timeout)/.test(error.message)) return 'silent'
  return 'away'
}

/** An outage in a sentence, and in the database's own words, for logs; undefined for faults of our own. */
export function outageInWords(error: unknown): { sentence: string; reason: string } | undefined {
  if (!isOutage(error) || !(error instanceof Error)) return undefined
  if (error instanceof PartUnavailable) return { sentence: error.message, reason: error.reason }
  return { sentence: sentences[outageOf(error)], reason: reasonOf(error) }
}

/** What an operator is told where the database cannot be opened at the start; undefined for faults of our own. */
export function storeProblem(error: unknown, databaseUrl: string): string | undefined {
  const isTold = error instanceof SchemaRefused || isOutage(error)
  if (!isTold || !(error instanceof Error)) return undefined
  const where = placeOf(databaseUrl)
  return outageOf(error) === 'damaged'
    ? `DATABASE_URL: ${where} is damaged (${error.message}): put a backup of it in its place, without -wal and -shm beside it`
    : `DATABASE_URL: ${where} cannot be used: ${reasonOf(error)}`
}

/** A database as operators know it: its file, or its server. */
export const placeOf = (databaseUrl: string): string =>
  databaseUrl.startsWith('sqlite:') ? databaseUrl.slice('sqlite:'.length) : hostOf(databaseUrl)

/** Of a name with several addresses, why each was out of reach. */
const reasonOf = (error: Error): string =>
  error instanceof AggregateError
    ? error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
    : error.message

/** Without user and password. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'the database')
