import type { ScriptedHub } from './scripted-hub.ts'
import { World, type CloudProcess, type ProcessOptions } from './world.ts'

/** Hubs 1 to `count`, not connected yet, and one process of the cloud that counts its transactions. */
export async function countedCloud(
  count: number,
  options: ProcessOptions = {},
): Promise<{ world: World; cloud: CloudProcess; hubs: ScriptedHub[]; commits: () => number }> {
  const hubIds = Array.from({ length: count }, (_, index) => index + 1)
  const world = await World.create(hubIds)
  let commits = 0
  const cloud = world.startCloud('cloud', {
    ...options,
    checkpoint: (point) => void (commits += Number(point === 'db.after-commit')),
  })
  const hubs = hubIds.map((hubId) => world.hub(hubId))
  await world.pass(100)
  return { world, cloud, hubs, commits: () => commits }
}
