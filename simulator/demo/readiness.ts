import { z } from 'zod'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'

const Health = z.object({ online: z.boolean() })

/** Waits until the cloud answers and says that the hub is online. False where `timeoutMs` passes before. */
export async function waitUntilReady(options: {
  clock: Clock
  baseUrl: string
  apiKey: string
  hubId: number
  timeoutMs: number
  /** Asked between attempts: true ends the waiting. */
  isGivenUp(): boolean
}): Promise<boolean> {
  const { clock, baseUrl, apiKey, hubId } = options
  const url = `${baseUrl}/api/v1/owners/hubs/get_hub_health?hub_id=${hubId}`
  const end = clock.monotonic() + options.timeoutMs
  while (clock.monotonic() < end && !options.isGivenUp()) {
    const body = await fetchJson(url, { 'X-API-Key': apiKey })
    if (Health.safeParse(body).data?.online) return true
    // The key's allowance is 360 calls a minute.
    await sleep(clock, 250)
  }
  return false
}

/** The JSON that `url` answers with; `undefined` where it does not. */
export async function fetchJson(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  try {
    const response = await fetch(url, { headers })
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  }
}
