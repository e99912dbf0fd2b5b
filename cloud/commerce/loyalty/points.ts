import type { CloudSettings } from '../../platform/settings/settings.ts'

/** What an order earns: a point for each whole `centsPerPoint` of its subtotal after deals, before tax (C §4.5). */
export const pointsFor = (subtotalCents: number, centsPerPoint: number): number =>
  Math.floor(subtotalCents / centsPerPoint)

export const pointsValue = (points: number, { loyaltyPointCents }: CloudSettings): number =>
  points * loyaltyPointCents
