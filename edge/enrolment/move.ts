import * as files from 'node:fs'
import { rootCertificates } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { BUILD } from '../../protocol/build.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { replaceText } from '../replace-text.ts'
import { mqttTransport } from '../sync/mqtt-transport.ts'
import type { NextCell } from '../../protocol/mqtt/session.ts'
import { enrolledBy, exchange, type Enrolled } from './enrol.ts'
import { enrolmentFiles, readEnrolment, type HubPlace } from './enrolment.ts'
import { readNext, requireReplaceable, type Answer, type Next } from './install.ts'

/** Time for the broker of the next cell to answer. */
const BROKER_MS = 10_000

export interface PrepareMoveOptions {
  place: HubPlace
  next: NextCell
  /** The hardware description that the hub uses now. */
  description: HardwareDescription
  runtime: Runtime
  tryBroker?: typeof signIn
}

/**
 * Enrols this board in another cell, beside its present enrolment, and tries the broker there (MQTT SPEC §2). So a wrong code or
 * address costs nothing. A repetition with the same code uses no code again, and tries the broker again. Throws a sentence.
 */
export async function prepareMove(options: PrepareMoveOptions): Promise<Enrolled> {
  const { place, next, runtime, description, tryBroker = signIn } = options
  const { order, code, cloud } = next
  const former = readEnrolment(place.store)
  if (!former) throw new Error('this board is not enrolled')
  requireReplaceable(place)
  const path = enrolmentFiles(place.store).next
  const earlier = readNext(path)
  const { key, answer } =
    earlier?.code === code && earlier.answer.hub_id === next.hub_id && earlier.former_hub_id === former.hubId
      ? earlier
      : await exchange({ cloud, code, store: place.store, runtime })
  try {
    requireSameHub(answer, { next, formerHubId: former.hubId, description })
    await tryBroker(key, answer, runtime)
  } catch (error) {
    // The next order enrols again. The same order keeps it: the cloud may have its answer, and then orders the board to leave.
    if (earlier?.order !== order) files.rmSync(path, { force: true })
    throw error
  }
  replaceText(path, JSON.stringify({ order, code, key, former_hub_id: former.hubId, answer } satisfies Next))
  return enrolledBy(answer)
}

function requireSameHub(
  { hub_id, hardware }: Answer,
  {
    next,
    formerHubId,
    description,
  }: { next: NextCell; formerHubId: number; description: HardwareDescription },
): void {
  if (hub_id !== next.hub_id) throw new Error(`the claim code is of hub ${hub_id}, not of hub ${next.hub_id}`)
  if (hub_id === formerHubId) throw new Error(`both cells give this hub the number ${hub_id}`)
  if (!hardware) throw new Error('the next cell has no hardware description of the hub')
  // The hub would start there with a description that it has never tried, and could not return.
  if (!isDeepStrictEqual({ ...HardwareDescription.parse(hardware), hubId: formerHubId }, description))
    throw new Error('the hardware description in the next cell differs from the one that this hub uses')
}

/** Signs in at the next broker once, and leaves. Throws a sentence if that fails. */
async function signIn(key: string, answer: Answer, runtime: Runtime): Promise<void> {
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
