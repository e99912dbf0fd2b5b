import type { HubAcceptance } from '../../edge/core/hub-core.ts'

type Ask = (name: string) => (...args: unknown[]) => { ok: true }

/** The acceptance of a scripted hub, which is not running. `ask` records its calls. */
export const idleAcceptance = (ask: Ask): HubAcceptance => ({
  begin: ask('begin'),
  beginSteps: ask('beginSteps'),
  stop: ask('stop'),
  decide: ask('decide'),
  end: ask('end'),
  state: () => ({ id: null, revision: 0, hindrance: null, running: null }),
  protocol: () => null,
  parts: () => ['bin 1'],
  kept: () => [],
})
