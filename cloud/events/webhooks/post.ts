import { lookup } from 'node:dns/promises'
import { Agent, request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import { bareHost } from '../../../protocol/model/address.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { isLocalName, isPublic } from './public-address.ts'

interface Address {
  address: string
  family: number
}

/** Where webhooks may go. */
export interface PostRules {
  /** Also in clear: not in production. */
  allowHttp: boolean
  /** Also to addresses that are not public. */
  allowPrivate: boolean
}

export interface PosterOptions extends PostRules {
  clock: Clock
  timeoutMs: number
  /** The addresses of a name; the system's where absent. */
  resolve?: (hostname: string) => Promise<Address[]>
}

export interface Posted {
  /** The answer's; absent where none came. */
  status?: number
  error?: string
}

/** Sends webhooks. */
export interface Poster {
  rules: PostRules
  /** Says why an address cannot be a webhook's, as far as that is known by now; undefined where it can. */
  refusal: (url: string) => Promise<string | undefined>
  /** One that was given up because the process ends says `stopped`. */
  post: (url: string, headers: Readonly<Record<string, string>>, body: string) => Promise<Posted | 'stopped'>
  /** Gives up what is under way, and sends nothing more. */
  stop: () => void
}

/** More of an answer is not read: what it says does not matter. */
const ANSWER_BYTES = 64 * 1024
/** And no longer is waited for the rest of it. */
const DRAIN_MS = 1000

class Refused extends Error {}

/**
 * Posts to addresses that strangers have chosen. The name is resolved here, every address that it has must be public, and the
 * connection is made to these very addresses: nothing resolves the name a second time, so that a name that changes between
 * check and connection gains nothing. Redirects are not followed.
 */
export function createPoster(options: PosterOptions): Poster {
  const { clock, timeoutMs, allowHttp, allowPrivate } = options
  const resolve = options.resolve ?? ((hostname) => lookup(hostname, { all: true }))
  const underWay = new Set<() => void>()
  let hasStopped = false

  async function checked(hostname: string): Promise<Address[]> {
    const literal = bareHost(hostname)
    const family = isIP(literal)
    const found = family === 0 ? await resolve(literal) : [{ address: literal, family }]
    const stranger = found.find(({ address }) => !isPublic(address))
    if (stranger && !allowPrivate)
      throw new Refused(`${hostname} is not a public address (${stranger.address})`)
    return found
  }

  /** As `net.connect` asks for the addresses of a name. */
  const lookupChecked: LookupFunction = (hostname, asked, answer) => {
    checked(hostname).then(
      (found) => {
        const [first] = found
        if (!first) answer(new Error(`${hostname} has no address`), '', 0)
        else if (asked.all === true) answer(null, found)
        else answer(null, first.address, first.family)
      },
      (error: unknown) => answer(error as Error, '', 0),
    )
  }
  const agentOptions = { keepAlive: true, maxFreeSockets: 1000, lookup: lookupChecked }
  const agents = { 'http:': new Agent(agentOptions), 'https:': new TlsAgent(agentOptions) }

  function target(url: string): URL {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:'))
      throw new Refused('it must be an address that begins with https://')
    if (parsed.protocol === 'http:' && !allowHttp) throw new Refused('it must begin with https://')
    if (parsed.username !== '' || parsed.password !== '')
      throw new Refused('a user and a password may not stand in it')
    if (!allowPrivate && isLocalName(parsed.hostname))
      throw new Refused(`${parsed.hostname} is not a public address: it is a local name`)
    return parsed
  }

  function send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<Posted | 'stopped'> {
    return new Promise((settle) => {
      const isTls = url.protocol === 'https:'
      const request: ClientRequest = (isTls ? requestHttps : requestHttp)(url, {
        method: 'POST',
        agent: agents[isTls ? 'https:' : 'http:'],
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          'User-Agent': `Larder-Webhooks/${PRODUCT_VERSION}`,
          ...headers,
        },
      })
      const cancelTimer = clock.after(timeoutMs, () => end({ error: `no answer within ${timeoutMs} ms` }))
      const giveUp = (): void => end('stopped')
      underWay.add(giveUp)
      function end(posted: Posted | 'stopped'): void {
        if (!underWay.delete(giveUp)) return
        cancelTimer()
        settle(posted)
        if (posted === 'stopped' || posted.status === undefined) request.destroy()
      }
      request.on('error', (error) => {
        // A connection that was kept may have been closed at the other end just then: nothing was asked on it.
        if (request.reusedSocket && underWay.delete(giveUp)) {
          cancelTimer()
          settle(send(url, headers, body))
        } else end({ error: error.message.slice(0, 200) })
      })
      request.on('response', (answer) => {
        end({ status: answer.statusCode! })
        drain(answer, request, clock)
      })
      request.end(body)
    })
  }

  return {
    rules: { allowHttp, allowPrivate },
    async refusal(url) {
      try {
        await checked(target(url).hostname)
        return undefined
      } catch (error) {
        // A name that has no address yet may get one: every connection is checked.
        return error instanceof Refused ? error.message : undefined
      }
    },
    async post(url, headers, body) {
      if (hasStopped) return 'stopped'
      try {
        const parsed = target(url)
        // Of a literal address no lookup is asked for.
        if (isIP(bareHost(parsed.hostname)) !== 0) await checked(parsed.hostname)
        return await send(parsed, headers, body)
      } catch (error) {
        return { error: error instanceof Error ? error.message : String(error) }
      }
    },
    stop() {
      hasStopped = true
      for (const giveUp of underWay) giveUp()
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** Reads the rest of a short answer, so that the connection can be used again; cuts a long or slow one off. */
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
