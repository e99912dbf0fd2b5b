import { rootCertificates } from 'node:tls'
import { BUILD } from '../../protocol/build.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport } from '../../protocol/mqtt/transport.ts'
import { mqttTransport } from '../sync/mqtt-transport.ts'
import type { Enrolment } from './enrolment.ts'

/** Time for the broker of another cell to answer. */
const BROKER_MS = 10_000

/**
 * Signs in once at the broker of another cell, where this board is enrolled, does `act` and leaves. Returns the reason if that
 * fails. `act` resolves to whether the broker has accepted it.
 */
export async function visitBroker(
  { hubId, mqttUrl, cert, key, ca }: Omit<Enrolment, 'formerHubId'>,
  runtime: Runtime,
  act: (transport: MqttTransport) => Promise<boolean> = () => Promise.resolve(true),
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
      { subscribe: [] },
      {
        onConnect: () => void act(transport!).then((isDone) => resolve(isDone ? undefined : NO_ANSWER)),
        onDisconnect: resolve,
        onMessage() {},
      },
    )
  })
  const reason = await Promise.race([visited, sleep(clock, BROKER_MS).then(() => NO_ANSWER)])
  transport?.close()
  return reason
}

const NO_ANSWER = 'it does not answer'
