import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { ApiError } from '../../cloud/platform/api-error.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import type { Site } from './stage.ts'

export interface CustomerWorld {
  sites: readonly Site[]
  chance: Chance
  coverage: Coverage
  /** A running process of the cloud, chosen by the load balancer. */
  cloud(): CommerceServices | undefined
  sleep(ms: number): Promise<void>
  /** Reports an error that is no answer: a simulated crash, or a defect. */
  report(error: unknown): void
  /** Whether customers still come. */
  isOpen(): boolean
}

/** An answer from the cloud: a value, an error of the API, or nothing because the process died or is down. */
export type Answer<T> = { kind: 'ok'; value: T } | { kind: 'refused'; code: string } | { kind: 'silence' }

/** Calls the cloud like an HTTP client. If the process dies, no answer comes, and the client times out. */
export async function ask<T>(
  world: CustomerWorld,
  call: (cloud: CommerceServices) => Promise<T>,
): Promise<Answer<T>> {
  const cloud = world.cloud()
  if (!cloud) return { kind: 'silence' }
  const answer = call(cloud).then(
    (value): Answer<T> => ({ kind: 'ok', value }),
    (error: unknown): Answer<T> => {
      if (error instanceof ApiError) return { kind: 'refused', code: error.code }
      world.report(error)
      return { kind: 'silence' }
    },
  )
  const patience = world.sleep(60_000).then((): Answer<T> => ({ kind: 'silence' }))
  return Promise.race([answer, patience])
}

/** Repeats a call until an answer comes, or until no process has answered for long. */
export async function retryCall<T>(
  world: CustomerWorld,
  call: (cloud: CommerceServices) => Promise<T>,
): Promise<Answer<T>> {
  for (let attempt = 0; attempt < 8; attempt++) {
    const answer = await ask(world, call)
    if (answer.kind !== 'silence') return answer
    await world.sleep(world.chance.between(500, 5000))
  }
  return { kind: 'silence' }
}
