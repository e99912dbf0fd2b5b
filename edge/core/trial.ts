import type { HubCore, LocalOutcome } from './hub-core.ts'

const WHY = 'A new version of the software is on trial. Try again in a few minutes.'

const unavailable: LocalOutcome = { ok: false, reason: 'unavailable', why: WHY }

/**
 * The core of a version that may be on trial (`update/trial.ts`). Meanwhile it refuses each action of a person and of the cloud
 * without a trace: the journal that would contain it may not stay.
 */
export function refusingOnTrial(core: HubCore, isOnTrial: () => boolean): HubCore {
  const unless =
    <Args extends unknown[]>(act: (...args: Args) => LocalOutcome) =>
    (...args: Args): LocalOutcome =>
      isOnTrial() ? unavailable : act(...args)
  const refused = { outcome: 'refused', reason: 'fault', data: { why: WHY } } as const
  const { acceptance } = core
  return {
    ...core,
    execute(command, reply) {
      const { command_id, session } = command
      if (isOnTrial()) reply({ command_id, session, ...refused })
      else core.execute(command, reply)
    },
    operate(body, reply, by) {
      if (isOnTrial()) reply({ command_id: '', session: '', ...refused })
      else core.operate(body, reply, by)
    },
    settle: unless((...args) => core.settle(...args)),
    restock: unless((...args) => core.restock(...args)),
    count: unless((...args) => core.count(...args)),
    confirmFridge: unless((...args) => core.confirmFridge(...args)),
    hold: unless((...args) => core.hold(...args)),
    takeOverController: unless((...args) => core.takeOverController(...args)),
    unlockDoor: unless((...args) => core.unlockDoor(...args)),
    replayDeadLetters: unless((...args) => core.replayDeadLetters(...args)),
    dropDeadLetter: unless((...args) => core.dropDeadLetter(...args)),
    acceptance: {
      begin: unless((...args) => acceptance.begin(...args)),
      beginSteps: unless((...args) => acceptance.beginSteps(...args)),
      stop: () => acceptance.stop(),
      decide: unless((...args) => acceptance.decide(...args)),
      end: unless((...args) => acceptance.end(...args)),
      state: () => acceptance.state(),
      protocol: (id) => acceptance.protocol(id),
      parts: () => acceptance.parts(),
      kept: () => acceptance.kept(),
    },
  }
}
