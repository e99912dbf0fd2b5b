import { z } from 'zod'
import { Id } from './fields.ts'

/** O §2, hub summary; the status words are contract §6's. */
export const HubSummary = z
  .object({
    id: Id,
    name: z.string(),
    street_address_1: z.string(),
    street_address_2: z.string().nullable(),
    city: z.string(),
    state: z.string(),
    hub_status: z.enum(['active', 'paused', 'maintenance', 'inactive']),
  })
  .meta({ id: 'HubSummary' })
export type HubSummary = z.infer<typeof HubSummary>

export const DeviceStatus = z.enum(['healthy', 'maintenance', 'fault', 'offline', 'unknown'])
