import { fail, ok, type Checks } from '../../protocol/model/doctor.ts'
import { cloudTopic, downFilter, downTopic, upFilter, upTopic } from '../../protocol/mqtt/topics.ts'
import {
  privateTopic,
  rightsAdvice,
  type CheckTools,
  type Line,
  type OpenOptions,
  type User,
} from './broker-check-user.ts'

/** A hub's user of the broker. */
export class CheckedHub {
  readonly user: User
  readonly hubId: number

  /** Throws if the user name is not `hub-ID`. */
  constructor(user: User) {
    const [, digits] = /^hub-([1-9]\d{0,9})$/.exec(user.name) ?? []
    if (digits === undefined)
      throw new Error(`the user of a hub is hub-ID, and not ${JSON.stringify(user.name)}`)
    this.user = user
    this.hubId = Number(digits)
  }

  open(options: OpenOptions = {}): Promise<Line> {
    return this.user.open({ clientId: this.user.name, ...options })
  }

  /** Opens a connection that is subscribed like a hub. */
  listen(): Promise<Line> {
    return this.open({ subscribe: [downFilter(this.hubId)] })
  }

  get up(): string {
    return upTopic(this.hubId, 'heartbeat')
  }

  get down(): string {
    return downTopic(this.hubId, 'later')
  }
}

/** `cloud`: without it, only the answers to the hubs are judged. */
export const hubQuestions = (
  tools: CheckTools,
  hub: CheckedHub,
  other: CheckedHub,
  cloud?: User,
): Checks => ({
  ...sessionQuestions(tools, hub, other, cloud),
  ...rightsQuestions(tools, hub, other, cloud),
})

const sessionQuestions = (
  { name, becomes, quiet }: CheckTools,
  hub: CheckedHub,
  other: CheckedHub,
  cloud: User | undefined,
): Checks => ({
  async 'hub sign-in'() {
    for (const each of [hub, other]) (await each.listen()).close()
    return ok('two hubs sign in and subscribe to their topics')
  },
  async 'hub topics'() {
    if (!cloud) return undefined
    const [watcher, line] = [await cloud.open({ subscribe: [upFilter] }), await hub.listen()]
    const payload = name()
    void line.publish(hub.up, payload)
    void watcher.publish(hub.down, payload)
    const arrived = () =>
      watcher.heard.includes(`${hub.up} ${payload}`) && line.heard.includes(`${hub.down} ${payload}`)
    if (await becomes(arrived)) return ok('the messages of a hub and of the cloud arrive')
    return fail(`the messages at ${hub.up} and ${hub.down} do not arrive`, rightsAdvice)
  },
  async 'second connection'() {
    const first = await hub.open()
    await hub.open()
    return (await becomes(() => first.ended() !== undefined))
      ? ok('a new connection of a hub ends its older one')
      : fail('a hub has two connections', rightsAdvice)
  },
  async 'foreign client id'() {
    const clientId = `check-${name()}`
    const [victim, ofCloud] = [await hub.open(), await cloud?.open({ clientId })]
    for (const id of [hub.user.name, clientId]) await other.user.open({ clientId: id }).catch(() => {})
    await quiet()
    if (victim.ended() !== undefined)
      return fail('a hub ends the connection of another hub by its client id', rightsAdvice)
    if (ofCloud?.ended() !== undefined)
      return fail('a hub ends the connection of the cloud by its client id', rightsAdvice)
    return ok('a hub cannot end the connection of another client')
  },
})

function rightsQuestions(
  { name, quiet }: CheckTools,
  hub: CheckedHub,
  other: CheckedHub,
  cloud: User | undefined,
): Checks {
  const foreign = [other.up, other.down, cloudTopic('nudge')]

  /** Lets the hub act at each foreign topic. Returns the first one where another client receives the message. */
  async function reached(
    act: (topic: string, payload: string) => Promise<void>,
  ): Promise<string | undefined> {
    const watcher = await cloud?.open({ subscribe: [upFilter, cloudTopic('nudge')] })
    const victim = await other.listen()
    for (const topic of foreign) {
      const payload = name()
      await act(topic, payload)
      await quiet()
      if ([watcher, victim].some((line) => line?.heard.includes(`${topic} ${payload}`))) return topic
    }
    return undefined
  }

  /** Whether a hub that subscribes to a filter receives messages of others. */
  async function overhears(filter: string): Promise<boolean> {
    const line = await hub.open()
    const grant = await line.subscribe([filter])
    if (grant?.granted.length !== 1) return false
    // Without another client, the grant itself is the fault.
    if (!cloud) return true
    const payload = name()
    const [sender, victim] = [await cloud.open(), await other.open()]
    void victim.publish(other.up, payload)
    for (const topic of [other.down, privateTopic('foreign')]) void sender.publish(topic, payload)
    await quiet()
    return line.heard.some((message) => message.endsWith(payload))
  }

  return {
    async 'foreign subscriptions'() {
      for (const filter of ['#', 'larder/#', downFilter(other.hubId), upFilter, 'larder/v1/cloud/#'])
        if (await overhears(filter)) return fail(`a hub receives foreign messages by ${filter}`, rightsAdvice)
      return ok('a hub receives only its own messages')
    },
    async 'foreign messages'() {
      const topic = await reached(async (to, payload) => {
        const line = await hub.open()
        void line.publish(to, payload)
      })
      return topic === undefined
        ? ok('the messages of a hub at foreign topics are refused')
        : fail(`a hub may publish at ${topic}`, rightsAdvice)
    },
    async 'foreign will'() {
      const topic = await reached(async (to, payload) => {
        const will = { topic: to, payload, retain: false }
        const line = await hub.open({ will }).catch(() => undefined)
        line?.cut()
      })
      return topic === undefined
        ? ok('the will of a hub at foreign topics is refused')
        : fail(`the will of a hub is published at ${topic}`, rightsAdvice)
    },
  }
}
