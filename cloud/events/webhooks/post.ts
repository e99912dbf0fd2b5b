import { lookup } from 'node:dns/promises'
import { Agent, request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction, BlockList } from 'node:net'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import { bareHost } from '../../../protocol/model/address.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'

interface Address {
  address: string
  family: number
}

/** The addresses that webhooks may have. */
interface PostRules {
  /** Also without TLS; not in production. */
  allowHttp: boolean
  /** Also private addresses. */
  allowPrivate: boolean
}

export interface PosterOptions extends PostRules {
  clock: Clock
  timeoutMs: number
  /** Resolves a name to addresses; default: the system's resolver. */
  resolve?: (hostname: string) => Promise<Address[]>
}

export interface Posted {
  /** The status of the answer; absent if there was none. */
  status?: number
  error?: string
}

/** Sends webhooks. */
export interface Poster {
  rules: PostRules
  /** Why an address cannot be a webhook's, if that is already known; otherwise undefined. */
  refusal: (url: string) => Promise<string | undefined>
  /** Sends a webhook. Resolves with `stopped` if the process ends before the answer. */
  post: (url: string, headers: Readonly<Record<string, string>>, body: string) => Promise<Posted | 'stopped'>
  /** Aborts the running requests and sends nothing more. */
  stop: () => void
}

/** Maximum number of bytes that are read of an answer: its content is not used. */
const ANSWER_BYTES = 64 * 1024
/** Maximum time to read the rest of an answer. */
const DRAIN_MS = 1000

class Refused extends Error {}

/**
 * Posts to addresses that integrators have chosen. It resolves the name and requires that every address is public. It
 * connects to exactly these addresses and never resolves the name again, so changing the name between check and
 * connection has no effect. It does not follow redirects.
 */
export class HttpPoster implements Poster {
  readonly rules: PostRules
  readonly #options: PosterOptions
  readonly #agents: { 'http:': Agent; 'https:': TlsAgent }
  /** Functions that abort the running requests. */
  readonly #underWay = new Set<() => void>()
  #hasStopped = false

  constructor(options: PosterOptions) {
    const { allowHttp, allowPrivate } = options
    this.rules = { allowHttp, allowPrivate }
    this.#options = options
    const agentOptions = { keepAlive: true, maxFreeSockets: 1000, lookup: this.#lookup }
    this.#agents = { 'http:': new Agent(agentOptions), 'https:': new TlsAgent(agentOptions) }
  }

  async refusal(url: string): Promise<string | undefined> {
    try {
      await this.#resolve(this.#target(url).hostname)
      return undefined
    } catch (error) {
      // A name without an address may get one later: every connection is checked.
      return error instanceof Refused ? error.message : undefined
    }
  }

  async post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<Posted | 'stopped'> {
    if (this.#hasStopped) return 'stopped'
    try {
      const parsed = this.#target(url)
      // `net.connect` does not look up a literal address.
      if (isIP(bareHost(parsed.hostname)) !== 0) await this.#resolve(parsed.hostname)
      return await this.#send(parsed, headers, body)
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }

  stop(): void {
    this.#hasStopped = true
    for (const giveUp of this.#underWay) giveUp()
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }

  /** The addresses of a name. Throws `Refused` if one of them is not public. */
  async #resolve(hostname: string): Promise<Address[]> {
    const { resolve = (name: string): Promise<Address[]> => lookup(name, { all: true }) } = this.#options
    const literal = bareHost(hostname)
    const family = isIP(literal)
    const found = family === 0 ? await resolve(literal) : [{ address: literal, family }]
    const refused = found.find(({ address }) => !isPublic(address))
    if (refused && !this.rules.allowPrivate)
      throw new Refused(`${hostname} is not a public address (${refused.address})`)
    return found
  }

  /** In the form that `net.connect` needs. */
  readonly #lookup: LookupFunction = (hostname, asked, answer) => {
    this.#resolve(hostname).then(
      (found) => {
        const [first] = found
        if (!first) answer(new Error(`${hostname} has no address`), '', 0)
        else if (asked.all === true) answer(null, found)
        else answer(null, first.address, first.family)
      },
      (error: unknown) => answer(error as Error, '', 0),
    )
  }

  #target(url: string): URL {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:'))
      throw new Refused('it must be an address that begins with https://')
    if (parsed.protocol === 'http:' && !this.rules.allowHttp) throw new Refused('it must begin with https://')
    if (parsed.username !== '' || parsed.password !== '')
      throw new Refused('a user and a password may not stand in it')
    if (!this.rules.allowPrivate && isLocalName(parsed.hostname))
      throw new Refused(`${parsed.hostname} is not a public address: it is a local name`)
    return parsed
  }

  #send(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Posted | 'stopped'> {
    const { clock, timeoutMs } = this.#options
    return new Promise((settle) => {
      const isTls = url.protocol === 'https:'
      const request: ClientRequest = (isTls ? requestHttps : requestHttp)(url, {
        method: 'POST',
        agent: this.#agents[isTls ? 'https:' : 'http:'],
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          'User-Agent': `Larder-Webhooks/${PRODUCT_VERSION}`,
          ...headers,
        },
      })
      const cancelTimer = clock.after(timeoutMs, () => end({ error: `no answer within ${timeoutMs} ms` }))
      const giveUp = (): void => end('stopped')
      this.#underWay.add(giveUp)
      const end = (posted: Posted | 'stopped'): void => {
        if (!this.#underWay.delete(giveUp)) return
        cancelTimer()
        settle(posted)
        if (posted === 'stopped' || posted.status === undefined) request.destroy()
      }
      request.on('error', (error) => {
        // The receiver may have closed the idle connection at this moment. Then it has not received the request.
        if (request.reusedSocket && this.#underWay.delete(giveUp)) {
          cancelTimer()
          settle(this.#send(url, headers, body))
        } else end({ error: error.message.slice(0, 200) })
      })
      request.on('response', (answer) => {
        end({ status: answer.statusCode! })
        drain(answer, request, clock)
      })
      request.end(body)
    })
  }
}

/** Reads the rest of a short answer, so that the connection can be reused. Aborts a long or slow one. */
function drain(answer: IncomingMessage, request: ClientRequest, clock: Clock): void {
  let bytes = 0
  const cancel = clock.after(DRAIN_MS, () => request.destroy())
  answer.on('close', cancel)
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES) request.destroy()
  })
  answer.on('error', () => {})
}

/** IPv4 addresses that are not hosts of the internet: IANA's special-purpose registry, multicast, and reserved ones. */
const notPublic4 = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic4.addSubnet(address, prefix, 'ipv4')

/** Of IPv6 only 2000::/3 is assigned. It contains no mapped, translated or local addresses. */
const global6 = new BlockList()
global6.addSubnet('2000::', 3, 'ipv6')
/** Exceptions within it: protocols such as Teredo, documentation, and 6to4, which embeds an IPv4 address. */
const notPublic6 = new BlockList()
for (const [address, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  notPublic6.addSubnet(address, prefix, 'ipv6')

/** Whether an address belongs to the public internet. */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !notPublic4.check(address, 'ipv4')
    case 6:
      return global6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6')
    default:
      return false
  }
}

/** Names below these belong to a machine or its network (RFC 6761, 6762, 8375, and usual entries of hosts files). */
const localNames = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'lan',
  'home.arpa',
  'invalid',
  'onion',
]

/**
 * Whether a host name never belongs to the public internet, whatever a name server answers. `isPublic` checks
 * addresses.
 */
function isLocalName(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.+$/, '')
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0) return false
  // A name without a dot is resolved in the machine's own domain: ip6-localhost, router.
  return !name.includes('.') || localNames.some((local) => name.endsWith(`.${local}`))
}
