import * as files from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { replaceText } from '../replace-text.ts'
import type { NextCell } from '../../protocol/mqtt/session.ts'
import { enrolledBy, exchange, type Enrolled } from './enrol.ts'
import { enrolmentFiles, readEnrolment, type HubPlace } from './enrolment.ts'
import { readAttempt, readNext, requireReplaceable, type Answer, type Next } from './install.ts'
import { askNextCell } from './visit-broker.ts'

export interface PrepareMoveOptions {
  place: HubPlace
  next: NextCell
  /** The hardware description that the hub uses now. */
  description: HardwareDescription
  runtime: Runtime
  ask?: typeof askNextCell
}

/**
 * Enrols this board in another cell, beside its present enrolment, and asks that cell over its broker (MQTT SPEC §2). So a wrong code
 * or address costs nothing. A repetition with the same code uses no code again, and asks again. Throws a sentence.
 */
export async function prepareMove(options: PrepareMoveOptions): Promise<Enrolled> {
  const { place, next, runtime, description, ask = askNextCell } = options
  const { order, code, cloud } = next
  const former = readEnrolment(place.store)
  if (!former) throw new Error('this board is not enrolled')
  requireReplaceable(place)
  const { next: path, attempt } = enrolmentFiles(place.store)
  const earlier = readNext(path)
  const isAgain =
    earlier?.code === code && earlier.answer.hub_id === next.hub_id && earlier.former_hub_id === former.hubId
  const { key, answer } = isAgain ? earlier : await exchange({ cloud, code, store: place.store, runtime })
  try {
    requireSameHub(answer, { next, formerHubId: former.hubId, description })
    const reason = await ask({ key, answer }, runtime)
    if (reason !== undefined) throw new Error(reason)
  } catch (error) {
    // A retired hub needs the earlier enrolment to leave. After an exchange its certificate is revoked.
    if (!isAgain) files.rmSync(path, { force: true })
    throw error
  }
  replaceText(path, JSON.stringify({ order, code, key, former_hub_id: former.hubId, answer } satisfies Next))
  // The other cell accepts this enrolment, so it has not used the code of a later attempt.
  if (readAttempt(attempt)?.code !== code) files.rmSync(attempt, { force: true })
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
