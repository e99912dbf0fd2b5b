import { renameSync, writeFileSync } from 'node:fs'
import { z } from 'zod'

/** What the seed program prints (contract §14: the demo's data). Keys are shown here and nowhere else again. */
export const SeedResult = z.object({
  owner: z.object({ api_key: z.string() }),
  other_owner: z.object({ api_key: z.string(), hub_id: z.int() }),
  diag: z.object({ api_key: z.string() }),
  hubs: z.array(z.object({ hub_id: z.int(), name: z.string() })).min(1),
  /** The password of hub 1 at the broker. */
  mqtt_password: z.string(),
  /** What hub 1's shelves hold at the beginning. */
  shelves: z.array(
    z.object({
      cabinet: z.int(),
      shelf: z.int(),
      row: z.int(),
      product_id: z.int(),
      units: z.int(),
    }),
  ),
})
export type SeedResult = z.infer<typeof SeedResult>

/** `data/demo.json`, as contract §14 has it. */
export interface DemoFile {
  base_url: string
  docs_url: string
  owner: { api_key: string }
  other_owner: { api_key: string; hub_id: number }
  diag: { api_key: string }
  hubs: { hub_id: number; name: string }[]
  simulator_url: string
  edge_url: string
  mqtt_url: string
  database_url: string
  pids: Record<'cloud' | 'edge' | 'simulator' | 'management', number | null>
}

/** Replaces the file at one instant: a reader sees the old one or the new one. Only its owner may read it. */
export function writeJson(path: string, value: unknown): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
