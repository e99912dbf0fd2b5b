import { isLoopback } from '../../../protocol/model/exposure.ts'
import { UsageError } from './usage-error.ts'

/** The modes of libpq (PostgreSQL manual, "SSL Support"), the weakest first. */
const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
type SslMode = (typeof sslModes)[number]

/** One server of a list. `host` is a name, an address without brackets, or the folder of a unix socket. */
export interface PostgresServer {
  host: string
  port: number
}

/** A `postgres://` address, as libpq defines it ("Connection URIs"). */
export interface PostgresAddress {
  servers: readonly PostgresServer[]
  user: string | undefined
  password: string | undefined
  database: string | undefined
  sslMode: SslMode
  /** File of the authorities to trust, or `system` for the authorities of Node. */
  rootCertificate: string | undefined
  /** Files of the client's certificate and its key. */
  certificate: string | undefined
  key: string | undefined
  keyPassphrase: string | undefined
  /** TLS from the first byte, without asking the server first. */
  isDirectTls: boolean
  applicationName: string
  /** Command-line options for the server (`-c search_path=larder`). */
  options: string | undefined
}

type ReadAddress = { ok: true; address: PostgresAddress } | { ok: false; problem: string }

const DEFAULT_PORT = 5432
/** Debian's folder. libpq also uses the unix socket if no host is given. */
const DEFAULT_HOST = '/var/run/postgresql'

const RESERVED =
  'user and password must be percent-encoded: write @ as %40, / as %2F, : as %3A, ? as %3F, # as %23, % as %25'
const HOSTS =
  'a host or port is malformed: write HOST:PORT, several separated by commas, IPv6 in brackets, its zone as %25eth0'

/** Parameters that name a value, and parameters with values that change nothing here. */
const known = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslpassword',
  'sslnegotiation',
  'target_session_attrs',
  'application_name',
  'options',
] as const
type Known = (typeof known)[number]
const harmless: Readonly<Record<string, readonly string[]>> = {
  channel_binding: ['disable', 'prefer'],
  client_encoding: ['utf8', 'utf-8', 'auto'],
  gssencmode: ['disable', 'prefer'],
  load_balance_hosts: ['disable'],
  uselibpqcompat: ['true'],
}
/** The service writes to each server that it uses. */
const sessionAttributes = ['any', 'read-write', 'primary']

class Malformed extends Error {}

/**
 * Reads a `postgres://` address as libpq does, without its environment variables for hosts and TLS. Returns the problem in
 * one sentence that repeats no part of user and password. Parameters without an effect here are refused.
 */
export function readPostgresUrl(url: string): ReadAddress {
  try {
    return { ok: true, address: addressOf(url.replace(/^postgres(ql)?:\/\//, '')) }
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, problem: error.message }
    throw error
  }
}

/** The same, but throws the problem as a `UsageError`. */
export function postgresAddress(url: string): PostgresAddress {
  const read = readPostgresUrl(url)
  if (!read.ok) throw new UsageError(`DATABASE_URL: ${read.problem}`)
  return read.address
}

function addressOf(text: string): PostgresAddress {
  const { userInfo, rest } = withoutUser(text)
  const [place, ...query] = rest.split('?')
  // A second @ belongs to a password that is not encoded.
  if (place!.includes('@') || (userInfo === undefined && query.join('?').includes('@')))
    throw new Malformed(RESERVED)
  const [authority, ...path] = place!.split('/')
  const given = parametersOf(query.join('?'))
  const [user, ...password] = userInfo?.split(':') ?? []
  return {
    servers: serversOf(authority!, given),
    user: given.user ?? decoded(user),
    password: given.password ?? (password.length > 0 ? decoded(password.join(':')) : undefined),
    database: given.dbname ?? decoded(path.join('/')),
    ...tlsOf(given),
    applicationName: given.application_name ?? 'larder',
    options: given.options,
  }
}

/** As in libpq, user and password end at the first @, unless a / comes first. */
function withoutUser(text: string): { userInfo?: string; rest: string } {
  const end = /[@/]/.exec(text)
  return end?.[0] === '@'
    ? { userInfo: text.slice(0, end.index), rest: text.slice(end.index + 1) }
    : { rest: text }
}

function decoded(text: string | undefined, problem = RESERVED): string | undefined {
  if (text === undefined || text === '') return undefined
  try {
    const value = decodeURIComponent(text)
    if (!value.includes('\0')) return value
  } catch {
    // The sentence below reports it.
  }
  throw new Malformed(problem)
}

type Given = Partial<Record<Known, string>>

function parametersOf(query: string): Given {
  const given: Given = {}
  for (const part of query === '' ? [] : query.split('&')) {
    const at = part.indexOf('=')
    if (at === -1) throw new Malformed('a parameter has no value: write NAME=VALUE')
    const [name, value] = [part.slice(0, at), decoded(part.slice(at + 1)) ?? '']
    // JDBC's name for it, which libpq accepts in an address.
    if (name === 'ssl' && value === 'true') given.sslmode = 'require'
    else if (known.includes(name as Known)) given[name as Known] = value
    else if (!harmless[name]?.includes(value.toLowerCase())) throw new Malformed(unknownParameter(name))
  }
  return given
}

function unknownParameter(name: string): string {
  const values = harmless[name]
  if (values) return `${name} must be left out or be ${values.join(' or ')}`
  if (name === 'connect_timeout')
    return 'connect_timeout has no effect: set DATABASE_READ_WAIT_MS and its like'
  return `the parameter ${JSON.stringify(name.slice(0, 40))} is not supported; supported are ${known.join(', ')}`
}

function serversOf(authority: string, { host, port }: Given): PostgresServer[] {
  const found = authority.split(',').map((part) => {
    const [, bracketed, name, its] = /^(?:\[([^\]]+)\]|([^:[\]]*))(?::(\d*))?$/.exec(part) ?? []
    if (bracketed === undefined && name === undefined) throw new Malformed(HOSTS)
    return { host: decoded(bracketed ?? name, HOSTS), port: its === '' ? undefined : its }
  })
  const hosts = host?.split(',') ?? found.map((each) => each.host)
  const ports = port?.split(',') ?? (host === undefined ? found.map((each) => each.port) : [found[0]?.port])
  if (ports.length !== 1 && ports.length !== hosts.length)
    throw new Malformed('port must have one value, or as many values as there are hosts')
  return hosts.map((name, index) => ({
    host: (name ?? '') === '' ? DEFAULT_HOST : name!.replace(/^\[(.*)\]$/, '$1'),
    port: portOf(ports[ports.length === 1 ? 0 : index]),
  }))
}

function portOf(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_PORT
  const port = Number(text)
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) throw new Malformed(HOSTS)
  return port
}

function tlsOf(given: Given) {
  const { sslmode = 'prefer', sslrootcert: root, sslnegotiation = 'postgres', target_session_attrs } = given
  const need = (holds: boolean, problem: string): void => {
    if (!holds) throw new Malformed(problem)
  }
  const isAtLeast = (mode: SslMode): boolean => sslModes.indexOf(sslmode as SslMode) >= sslModes.indexOf(mode)
  need(sslModes.includes(sslmode as SslMode), `sslmode must be one of ${sslModes.join(', ')}`)
  need(['postgres', 'direct'].includes(sslnegotiation), 'sslnegotiation must be postgres or direct')
  need(
    sslnegotiation === 'postgres' || isAtLeast('require'),
    'sslnegotiation=direct needs sslmode=require, verify-ca or verify-full',
  )
  need(
    sslmode !== 'verify-ca' || (root !== undefined && root !== 'system'),
    'sslmode=verify-ca needs sslrootcert=FILE',
  )
  need(root !== 'system' || sslmode === 'verify-full', 'sslrootcert=system needs sslmode=verify-full')
  need(
    (given.sslcert === undefined) === (given.sslkey === undefined),
    'sslcert and sslkey must be set together',
  )
  need(
    target_session_attrs === undefined || sessionAttributes.includes(target_session_attrs),
    `target_session_attrs must be ${sessionAttributes.join(', ').replace(/, (\S+)$/, ' or $1')}: the service writes`,
  )
  return {
    sslMode: sslmode as SslMode,
    rootCertificate: root,
    certificate: given.sslcert,
    key: given.sslkey,
    keyPassphrase: given.sslpassword,
    isDirectTls: sslnegotiation === 'direct',
  }
}

export const isSocket = ({ host }: PostgresServer): boolean => host.startsWith('/')

/** Hosts with possibly unencrypted connections over a network: `prefer` accepts a server without TLS. */
export const hostsInClear = ({ servers, sslMode }: PostgresAddress): string[] =>
  ['disable', 'allow', 'prefer'].includes(sslMode)
    ? servers.filter((server) => !isSocket(server) && !isLoopback(server.host)).map(serverName)
    : []

/** A server in logs and sentences. */
export function serverName(server: PostgresServer): string {
  const { host, port } = server
  if (isSocket(server)) return `${host}/.s.PGSQL.${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
