import { fail, ok, warn, type Checks } from '../../protocol/model/doctor.ts'
import { MAX_PACKET_BYTES } from '../../protocol/mqtt/packet-limit.ts'
import { hubFilter, upFilter } from '../../protocol/mqtt/topics.ts'
import { CheckedHub, hubQuestions } from './broker-check-hubs.ts'
import {
  brokerAdvice,
  checkTools,
  privateTopic,
  type BrokerCheckOptions,
  type CheckTools,
  type Line,
  type User,
} from './broker-check-user.ts'

/** A round trip above this time is no normal operation. */
const SLOW_MS = 1000
const AT_ONCE = 300
/** Room for topic and header in a packet of the maximum size. */
const HEADER_BYTES = 200

/**
 * The questions to a broker with the cloud's user, and to two hubs' users if they are given. They use topics and client
 * ids that no cloud and no hub uses, so a running service is not disturbed; only the two hubs must be switched off.
 * `hubCount`: the number of hubs of one cloud process.
 */
export function brokerQuestions(
  {
    cloud: cloudUrl,
    hubs: hubUrls,
    hubCount = 1000,
  }: { cloud?: string; hubs?: readonly [string, string]; hubCount?: number },
  options: BrokerCheckOptions,
): { checks: Checks; close: () => void } {
  const t = checkTools(options)
  const cloud = cloudUrl === undefined ? undefined : t.user(cloudUrl)
  const hubAt = (url: string) => new CheckedHub(t.user(url))
  const checks = {
    ...(cloud && {
      ...signInQuestions(cloud),
      ...messageQuestions(t, cloud, hubCount),
      ...sessionQuestions(t, cloud),
    }),
    ...(hubUrls && hubQuestions(t, hubAt(hubUrls[0]), hubAt(hubUrls[1]), cloud)),
  }
  return { checks, close: t.close }
}

const signInQuestions = (cloud: User): Checks => ({
  async 'sign-in'() {
    await cloud.open()
    return ok('the broker accepts the user and the password of the cloud')
  },
  async 'wrong password'() {
    for (const [what, other] of [
      ['a wrong password', cloud.with('wrong')],
      ['a client without user and password', cloud.with('')],
    ] as const) {
      const reason = await other.open().then(
        () => undefined,
        (error: Error) => error.message,
      )
      if (reason === undefined)
        return fail(`the broker accepts ${what}`, brokerAdvice('it must check passwords'))
    }
    return ok('the broker refuses a wrong password, and a client without one')
  },
})

const messageQuestions = ({ clock, name, becomes }: CheckTools, cloud: User, hubCount: number): Checks => ({
  async delivery() {
    const topic = privateTopic(name())
    const line = await cloud.open({ subscribe: [topic] })
    const times: number[] = []
    for (let n = 0; n < 20; n += 1) {
      const start = clock.monotonic()
      void line.publish(topic, String(n))
      if (!(await becomes(() => line.heard.includes(`${topic} ${n}`))))
        return fail(
          `a message at ${topic} does not arrive${line.ended() === undefined ? '' : `: ${line.ended()}`}`,
          'Give the user of the cloud the right to write and to read larder/v1/cloud/#.',
        )
      times.push(clock.monotonic() - start)
    }
    const median = Math.round(times.toSorted((a, b) => a - b)[10]!)
    const message = `a message arrives after ${median} ms (median of 20)`
    return median > SLOW_MS ? fail(message, brokerAdvice('it must deliver within a second')) : ok(message)
  },
  async 'packet size'() {
    const topic = privateTopic(name())
    const line = await cloud.open({ subscribe: [topic] })
    await line.publish(topic, 'x'.repeat(MAX_PACKET_BYTES - HEADER_BYTES))
    if (await becomes(() => line.heard.length > 0)) return ok('the broker carries a packet of 1 MiB')
    const why = line.ended() ?? 'it does not arrive'
    return fail(`a packet of 1 MiB is lost: ${why}`, brokerAdvice('it must carry packets of 1 MiB'))
  },
  async 'messages in flight'() {
    const topic = privateTopic(name())
    const line = await cloud.open({ subscribe: [topic] })
    for (let n = 0; n < AT_ONCE; n += 1) void line.publish(topic, `${n} ${'x'.repeat(1000)}`)
    if (await becomes(() => new Set(line.heard).size === AT_ONCE))
      return ok(`${AT_ONCE} messages that are sent at once arrive`)
    return fail(
      `${new Set(line.heard).size} of ${AT_ONCE} messages arrive that are sent at once`,
      brokerAdvice(`it must hold at least ${AT_ONCE} messages for a client`),
    )
  },
  async 'filter of all hubs'() {
    const line = await cloud.open()
    const grant = await line.subscribe([upFilter])
    return grant?.granted.length === 1
      ? ok(`the broker grants ${upFilter}`)
      : fail(`the broker refuses ${upFilter}`, `Give the user of the cloud the right to read ${upFilter}.`)
  },
  async subscriptions() {
    const line = await cloud.open()
    // No hub has such a number.
    const filters = Array.from({ length: hubCount }, (_, n) => hubFilter(2_000_000_000 + n))
    const grant = await line.subscribe(filters)
    if (!grant)
      return fail(
        `the connection ends at ${hubCount} subscriptions: ${line.ended()}`,
        brokerAdvice('it must answer each filter'),
      )
    const { granted, refused } = grant
    if (refused.length === 0) return ok(`the broker grants ${hubCount} subscriptions of one connection`)
    return warn(
      `the broker grants ${granted.length} of ${hubCount} subscriptions of one connection`,
      `Raise its limit. Otherwise each cloud process receives the messages of all hubs by ${upFilter}.`,
    )
  },
})

const sessionQuestions = ({ name, becomes, quiet }: CheckTools, cloud: User): Checks => {
  /** Opens a connection with a will, ends it, and returns whether another one receives the will. */
  async function isWillSent(end: (line: Line) => void, keepaliveSeconds = 30): Promise<boolean> {
    const topic = privateTopic(name())
    const watcher = await cloud.open({ subscribe: [topic] })
    end(await cloud.open({ keepaliveSeconds, will: { topic, payload: 'gone', retain: false } }))
    return becomes(() => watcher.heard.length > 0)
  }
  const willAdvice = brokerAdvice('it must publish the will of a lost connection within seconds')
  return {
    async will() {
      if (await isWillSent((line) => line.cut())) return ok('the will of a cut connection is published')
      return fail('the will of a cut connection is not published', willAdvice)
    },
    async 'will of a silent client'() {
      if (await isWillSent((line) => line.fallSilent(), 2))
        return ok('the will of a client that sends no pings is published')
      return fail('the will of a client that sends no pings is not published', willAdvice)
    },
    async 'clean end'() {
      const topic = privateTopic(name())
      const watcher = await cloud.open({ subscribe: [topic] })
      const leaver = await cloud.open({ will: { topic, payload: 'gone', retain: false } })
      leaver.close()
      await quiet()
      return watcher.heard.length === 0
        ? ok('a client that leaves cleanly has no will')
        : fail('the will of a client that leaves cleanly is published', brokerAdvice('MQTT 3.1.1 §3.14'))
    },
    async 'client id'() {
      const clientId = `check-${name()}`
      const first = await cloud.open({ clientId })
      await cloud.open({ clientId })
      return (await becomes(() => first.ended() !== undefined))
        ? ok('a new connection ends an older one with its client id')
        : fail('two connections have the same client id', brokerAdvice('MQTT 3.1.1 §3.1.4'))
    },
    async retained() {
      const topic = privateTopic(name())
      const line = await cloud.open()
      let isAccepted = false
      void line.publish(topic, 'stored', { retain: true }).then((accepted) => (isAccepted = accepted))
      await becomes(() => isAccepted || line.ended() !== undefined)
      const late = await cloud.open({ subscribe: [topic] })
      const arrives = isAccepted && (await becomes(() => late.heard.length > 0))
      void line.publish(topic, '', { retain: true })
      if (arrives) return ok('a retained message arrives at a later subscription')
      const why = line.ended() === undefined ? '' : `: ${line.ended()}`
      return fail(
        `a retained message does not arrive${why}`,
        brokerAdvice('the presence of hubs is retained'),
      )
    },
    async reconnection() {
      const [clientId, topic] = [`check-${name()}`, privateTopic(name())]
      const first = await cloud.open({ clientId, subscribe: [topic] })
      first.cut()
      await becomes(() => first.ended() !== undefined)
      const again = await cloud.open({ clientId, subscribe: [topic] })
      await again.publish(topic, 'after')
      return (await becomes(() => again.heard.length > 0))
        ? ok('messages arrive after a reconnection')
        : fail('no message arrives after a reconnection', brokerAdvice('it must start a clean session'))
    },
  }
}
