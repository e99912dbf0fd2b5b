import { PartUnavailable } from '../unavailable.ts'
import { UsageError } from '../settings/usage-error.ts'
import { SchemaRefused } from './schema-check.ts'
import { readPostgresUrl, serverName } from '../settings/postgres-url.ts'

/**
 * The database is unreachable or refuses to serve. Every connection error becomes one, whatever its code, because a
 * list of known codes is never complete. `code` is the code of the cause, if it has one.
 */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code: string | undefined

  constructor(message: string, cause?: unknown, code?: string) {
    super(message, { cause })
    this.code = code ?? (cause instanceof Error ? codeOf(cause) || undefined : undefined)
  }
}

/**
 * PostgreSQL's error classes that are not the statement's fault: connection, authorization, transactions that block
 * each other (after all attempts), resources, operator intervention, I/O.
 */
const POSTGRES_CLASSES = ['08', '28', '40', '53', '57', '58']
/**
 * A read-only server, a lock timeout, an ended idle transaction, damaged files. A pooler in transaction mode loses
 * prepared statements (26000) or mixes them up (42P05).
 */
const POSTGRES_CODES = ['25006', '55P03', '25P03', '25P04', 'XX001', 'XX002', '26000', '42P05']
/** A fatal error ends the connection. The statement is not its cause. */
const FATAL = ['FATAL', 'PANIC']
/** The disk is full or unreadable or read-only, another process holds the file too long, or the file is damaged. */
const SQLITE = /^SQLITE_(FULL|IOERR|BUSY|CANTOPEN|READONLY|CORRUPT|NOTADB|PERM|NOLFS|PROTOCOL|NOMEM)/

/** Any system error: connections, addresses, files, descriptors, memory. */
const SYSTEM = /^(E[A-Z0-9]+|EAI_[A-Z]+)$/
/** Errors of `pg` without a code. */
const ENDED =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying|timeout expired|Query read timeout)/

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : '')

/** Whether the database or another part is unreachable or cannot store anything now. The call may succeed later. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof PartUnavailable || error instanceof DatabaseUnavailable) return true
  const code = codeOf(error)
  if (code === '') return ENDED.test(error.message)
  if (SQLITE.test(code) || SYSTEM.test(code) || POSTGRES_CODES.includes(code)) return true
  if ('severity' in error && FATAL.includes(String(error.severity))) return true
  return code.length === 5 && POSTGRES_CLASSES.includes(code.slice(0, 2))
}

/** Whether a statement waited too long for a lock. Another row may be free. */
export const isLockedOut = (error: unknown): boolean => error instanceof Error && codeOf(error) === '55P03'

type Outage = 'full' | 'damaged' | 'locked' | 'silent' | 'readOnly' | 'blocked' | 'away'

/** The explanation of each outage for operators. */
const sentences: Record<Outage, string> = {
  full: 'the disk of the database is full: calls that write are answered 503 until there is room',
  damaged: 'the database is damaged: stop the service and put a backup in its place',
  locked: 'others keep the database locked: calls that need what they have locked are answered 503',
  silent: 'the database does not answer in time: calls are answered 503 until it does',
  readOnly: 'the database accepts no writes: calls are answered 503 until it does',
  blocked: 'transactions of the database fail against each other: those calls are answered 503',
  away: 'the database is out of reach: calls are answered 503 until it is back',
}

function outageOf(error: Error): Outage {
  const code = codeOf(error)
  if (code === 'SQLITE_FULL' || code === '53100') return 'full'
  if (/^(SQLITE_(CORRUPT|NOTADB)|XX00[12]$)/.test(code)) return 'damaged'
  if (code.startsWith('SQLITE_BUSY') || code === '55P03') return 'locked'
  if (code === '25006' || code.startsWith('SQLITE_READONLY')) return 'readOnly'
  if (code.startsWith('40')) return 'blocked'
  if (code === '57014' || /^(timeout|Query read timeout|Connection terminated due to)/.test(error.message))
    return 'silent'
  return 'away'
}

/** An outage's explanation and the database's own message, for logs. Undefined for internal errors. */
export function outageText(error: unknown): { sentence: string; reason: string } | undefined {
  if (!isOutage(error) || !(error instanceof Error)) return undefined
  if (error instanceof PartUnavailable) return { sentence: error.message, reason: error.reason }
  return { sentence: sentences[outageOf(error)], reason: reasonOf(error) }
}

/**
 * Why the database cannot be opened at the start, as a sentence for the operator. Undefined for internal errors. Every
 * error of the database itself at the start is the operator's to fix: missing rights, a wrong password, another schema.
 */
export function storeProblem(error: unknown, databaseUrl: string): string | undefined {
  if (error instanceof UsageError) return error.message
  if (!(error instanceof Error)) return undefined
  if (!(error instanceof SchemaRefused || isOutage(error) || 'severity' in error)) return undefined
  const where = placeOf(databaseUrl)
  return outageOf(error) === 'damaged'
    ? `DATABASE_URL: ${where} is damaged (${error.message}): put a backup of it in its place, without -wal and -shm beside it`
    : `DATABASE_URL: ${where} cannot be used: ${reasonOf(error)}`
}

/** A database as operators know it: its file or its servers, without user and password. */
export function placeOf(databaseUrl: string): string {
  if (databaseUrl.startsWith('sqlite:')) return databaseUrl.slice('sqlite:'.length)
  const read = readPostgresUrl(databaseUrl)
  return read.ok ? read.address.servers.map(serverName).join(', ') : 'the database'
}

/** The message of an error. For an aggregate error, the message of each part. */
export const reasonOf = (error: Error): string =>
  error instanceof AggregateError
    ? error.errors.map((each) => (each instanceof Error ? reasonOf(each) : String(each))).join('; ')
    : error.message
