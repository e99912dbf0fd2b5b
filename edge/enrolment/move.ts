import * as files from 'node:fs'
import { rootCertificates } from 'node:tls'
import { BUILD } from '../../protocol/build.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { replaceText } from '../replace-text.ts'
import { mqttTransport } from '../sync/mqtt-transport.ts'
import { enrolledBy, exchange, type Enrolled, type EnrolOptions } from './enrol.ts'
import { enrolmentFiles, readEnrolment } from './enrolment.ts'
import { readNext, requireReplaceable, type Answer, type Next } from './install.ts'

/** Time for the broker of the next cell to answer. */
const BROKER_MS = 10_000

/**
 * Enrols this board in another cell, beside its present enrolment, and tries the broker there (MQTT SPEC §2). So a wrong code or
 * address costs nothing. A repetition with the same code changes nothing. Throws a sentence.
 */
export async function prepareMove(options: EnrolOptions & { as: number }): Promise<Enrolled> {
  const { code, store, runtime, as } = options
  const { next } = enrolmentFiles(store)
  const earlier = readNext(next)
  if (earlier?.code === code && earlier.answer.hub_id === as) return enrolledBy(earlier.answer)
  // The exchange of another code ends the certificate of the earlier one.
  files.rmSync(next, { force: true })
  const former = readEnrolment(store)
  if (!former) throw new Error('this board is not enrolled')
  requireReplaceable(options)
  const { key, answer } = await exchange(options)
  if (answer.hub_id !== as) throw new Error(`the claim code is of hub ${answer.hub_id}, not of hub ${as}`)
  if (answer.hub_id === former.hubId) throw new Error(`both cells give this hub the number ${as}`)
  if (!answer.hardware) throw new Error('the next cell has no hardware description of the hub')
  await tryBroker(key, answer, runtime)
  replaceText(next, JSON.stringify({ code, key, former_hub_id: former.hubId, answer } satisfies Next))
  return enrolledBy(answer)
}

/** Signs in at the next broker once, and leaves. Throws a sentence if that fails. */
async function tryBroker(key: string, answer: Answer, runtime: Runtime): Promise<void> {
  const { mqtt_url: url, hub_id, certificate: cert, ca } = answer
  const { clock } = runtime
  const open = mqttTransport({
    urls: [url],
    user: hubUser(hub_id),
    password: undefined,
    client: () => ({ cert, key }),
    runtime,
    // As for the address of the cloud: the clock of the board may be years late.
    time: () => ({ ...certificateTime(clock.now(), BUILD?.committedAt ?? 0), latest: Infinity }),
    ca: () => [ca, ...rootCertificates].join('\n'),
  })
  let reason: string | undefined = 'it does not answer'
  await new Promise<void>((resolve) => {
    const transport = open(
      { subscribe: [] },
      {
        onConnect() {
          reason = undefined
          transport.close()
          resolve()
        },
        onDisconnect(why) {
          reason = why
          resolve()
        },
        onMessage() {},
      },
    )
    void sleep(clock, BROKER_MS).then(resolve)
  })
  if (reason !== undefined) throw new Error(`the broker ${url} refuses the hub: ${reason}`)
}
