import { rootCertificates } from 'node:tls'
import { BUILD } from '../../protocol/build.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { authoritiesDigest, certificateTime } from '../../protocol/mqtt/certificates.ts'
import type { CertificateRequest } from '../../protocol/mqtt/session.ts'
import { downFilter, hubUser, parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport } from '../../protocol/mqtt/transport.ts'
import { mqttTransport } from '../sync/mqtt-transport.ts'
import type { Enrolment } from './enrolment.ts'
import type { Next } from './install.ts'

/** Time for the broker of another cell, and for its cloud, to answer. */
const BROKER_MS = 15_000

/** The messages of a visit. Without subscriptions there are none. */
interface Heard {
  subscribe: readonly string[]
  onMessage: (topic: string) => void
}

/**
 * Signs in once at the broker of another cell, where this board is enrolled, does `act` and leaves. Returns the reason if that
 * fails. `act` resolves to whether it has succeeded.
 */
export async function visitBroker(
  { hubId, mqttUrl, cert, key, ca }: Omit<Enrolment, 'formerHubId'>,
  runtime: Runtime,
  act: (transport: MqttTransport) => Promise<boolean>,
  { subscribe, onMessage }: Heard = { subscribe: [], onMessage: () => {} },
): Promise<string | undefined> {
  const { clock } = runtime
  const open = mqttTransport({
    urls: [mqttUrl],
    user: hubUser(hubId),
    password: undefined,
    client: () => ({ cert, key }),
    runtime,
    // As for the address of the cloud: the clock of the board may be years late.
    time: () => ({ ...certificateTime(clock.now(), BUILD?.committedAt ?? 0), latest: Infinity }),
    ca: () => [ca, ...rootCertificates].join('\n'),
  })
  let transport: MqttTransport | undefined
  const visited = new Promise<string | undefined>((resolve) => {
    transport = open(
      { subscribe },
      {
        onConnect: () => void act(transport!).then((isDone) => resolve(isDone ? undefined : NO_ANSWER)),
        onDisconnect: resolve,
        onMessage,
      },
    )
  })
  const reason = await Promise.race([visited, sleep(clock, BROKER_MS).then(() => NO_ANSWER)])
  transport?.close()
  return reason
}

const NO_ANSWER = 'the broker does not answer'

/**
 * Proves that the cell in which this board is enrolled still takes it. Returns a sentence if it does not. A broker of another make may
 * accept a revoked certificate, so the cloud must answer: it ignores retired and revoked hubs, and sends its authorities to any other
 * hub that trusts none (MQTT SPEC §2). The question changes nothing there.
 */
export async function askNextCell(
  { key, answer: { hub_id: hubId, mqtt_url: mqttUrl, certificate: cert, ca } }: Pick<Next, 'key' | 'answer'>,
  runtime: Runtime,
): Promise<string | undefined> {
  const question = { ca: authoritiesDigest('') } satisfies CertificateRequest
  let isAsked = false
  let answered = (): void => {}
  const answer = new Promise<true>((resolve) => (answered = () => resolve(true)))
  const heard: Heard = {
    subscribe: [downFilter(hubId)],
    onMessage: (topic) => void (parseDownTopic(hubId, topic) === 'certificate' && answered()),
  }
  const reason = await visitBroker(
    { hubId, mqttUrl, cert, key, ca },
    runtime,
    async (transport) => {
      isAsked = await transport.publish(upTopic(hubId, 'certificate'), JSON.stringify(question))
      return isAsked && answer
    },
    heard,
  ).catch(problemOf)
  if (reason === undefined) return undefined
  const why =
    isAsked && reason === NO_ANSWER ? 'its broker accepts it, and its cloud does not answer' : reason
  return `the other cell does not take this hub (${mqttUrl}): ${why}`
}
