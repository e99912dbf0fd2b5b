import type { GatewayLimits } from '../../cloud/platform/settings/gateway-limits.ts'
import { defaultLimits, type CloudSettings } from '../../cloud/platform/settings/limits.ts'
import { defaultHubSettings, type HubSettings } from '../../protocol/settings/hub-limits.ts'
import { HANGS, makeImage } from '../../simulator/firmware/image.ts'
import type { Chance } from './chance.ts'

const MINUTE = 60_000

/** Shorter limits than in production, so that a seed reaches every deadline. */
const simulatedRules: CloudSettings = {
  ...defaultLimits.rules,
  idleOrderMs: 4 * MINUTE,
  purgeExpiredMs: 20 * MINUTE,
  startWithinMs: 4 * MINUTE,
  prepareTimeoutMs: 4 * MINUTE,
  unclaimedTimeoutMs: 6 * MINUTE,
  silentHubMs: 30 * MINUTE,
  paymentRecheckMs: 5000,
  paymentAbandonMs: 2 * MINUTE,
  paymentHoldMs: 2 * MINUTE,
  externalClaimMs: MINUTE,
  refundRetryMs: 2 * MINUTE,
  refundRetries: 2,
  refundStuckMs: MINUTE,
  processorCheckMs: 5 * MINUTE,
}

export interface Limits {
  rules: CloudSettings
  gateway: GatewayLimits
  hub: HubSettings
  /** The firmware that the hubs have for their controllers; undefined in most seeds. */
  image: Buffer | undefined
}

/** Slow motors run longer than this, and their controllers stop them. */
const hasty: HubSettings['core']['maxMs'] = {
  open_door: 3000,
  close_door: 3000,
  raise_lift: 6000,
  lower_lift: 6000,
  dispense: 5000,
}

/** Products that spoil within minutes, so that a seed covers an unreadable fridge. */
const perishable = {
  healthShutoffMs: MINUTE,
  fridgeUnreadableMs: 40_000,
  warmAlarmMs: 30_000,
} satisfies Partial<HubSettings['core']>

/**
 * Half of a seed's limits are those of production, the others are 1 to 3. Every batch, window, ring and page
 * overflows, and none of them may limit the work that gets done.
 */
export function drawLimits(chance: Chance): Limits {
  const limit = (standard: number, most = 3): number =>
    chance.happens(0.5) ? standard : chance.between(1, most)
  const { core, sync, outbox, links, storage } = defaultHubSettings
  const limits: Limits = {
    rules: {
      ...simulatedRules,
      workBatch: limit(simulatedRules.workBatch),
      workConcurrency: limit(simulatedRules.workConcurrency),
      retentionBatch: limit(simulatedRules.retentionBatch),
      topProducts: limit(simulatedRules.topProducts),
      orphanedPayments: chance.pick(['alarm', 'refund']),
    },
    gateway: {
      ...defaultLimits.gateway,
      sender: {
        ...defaultLimits.gateway.sender,
        batchEntries: limit(defaultLimits.gateway.sender.batchEntries),
        windowBytes: limit(defaultLimits.gateway.sender.windowBytes),
        maxWindowBytes: limit(defaultLimits.gateway.sender.maxWindowBytes),
      },
      batchBytes: limit(defaultLimits.gateway.batchBytes),
    },
    image: undefined,
    hub: {
      storage,
      // Pings on idle lines would be most of the cost of a seed.
      links: { ...links, pingMs: 3 * links.pingMs, silentMs: 3 * links.silentMs },
      core: { ...core, kept: { ...core.kept, rows: limit(core.kept.rows) } },
      outbox: {
        ...outbox,
        telemetryEntries: limit(outbox.telemetryEntries),
        ledgerEntries: limit(outbox.ledgerEntries, 60),
      },
      sync: {
        ...sync,
        ledger: { ...sync.ledger, batchEntries: limit(1000) },
        telemetry: { ...sync.telemetry, batchEntries: limit(1000) },
        stream: {
          ...sync.stream,
          windowBytes: limit(sync.stream.windowBytes),
          maxWindowBytes: limit(sync.stream.maxWindowBytes),
        },
        batchBytes: limit(sync.batchBytes),
      },
    },
  }
  // Drawn last, so that the other draws stay the same.
  if (chance.happens(0.3)) limits.hub.core.maxMs = hasty
  if (chance.happens(0.4)) Object.assign(limits.hub.core, perishable)
  if (chance.happens(0.3)) {
    limits.hub.core.firmware = { ...core.firmware, afterMs: chance.between(0, MINUTE) }
    limits.image = makeImage({ build: 2 }, chance.happens(0.2) ? HANGS : 'x'.repeat(chance.between(1, 9000)))
  }
  return limits
}
