import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Cancel } from '../../../protocol/model/runtime.ts'
import type { CommandResult } from '../../../protocol/mqtt/command.ts'
import type { AcceptanceRow } from '../../journal/acceptances.ts'
import { isAvailable, isPrepared, viewBins } from '../bins/bin.ts'
import { operate } from '../commands.ts'
import type { Context } from '../context.ts'
import type { AcceptanceState } from '../../../protocol/model/acceptance.ts'
import type { LocalOutcome, LocalRefusal } from '../hub-core.ts'
import { doorSubject, HUB_SUBJECT } from '../../../protocol/model/subject.ts'
import type { HubCommand } from '../local-command.ts'
import {
  changesOf,
  isAllSeen,
  judge,
  obstacle,
  observedWords,
  type Observation,
  type Readings,
  type Seen,
} from './observation.ts'
import { firmwareNow, protocolOf, reportAcceptance, stepsNow } from './protocol.ts'
import { readingsOf } from './readings.ts'
import { NOT_DONE, resultOf } from './report.ts'
import { stepsOf, type AcceptanceStep } from './steps.ts'

/** A step that is being carried out. In memory alone: a hub that was away does not take up again what moves. */
interface Run {
  step: AcceptanceStep
  before: Readings
  last: Readings
  seen: Seen[]
  /** What the hub has to do is done; what is seen until `settleMs` later belongs to it. */
  isDone: boolean
  bin?: number
  drops?: number
  cancelTimeout: Cancel
  cancelSettle?: Cancel
}

const no = (reason: LocalRefusal, why?: string): LocalOutcome => ({
  ok: false,
  reason,
  ...(why !== undefined && { why }),
})
const done: LocalOutcome = { ok: true }

export type Acceptance = ReturnType<typeof createAcceptance>

/**
 * The guided acceptance of the hub. What was done, seen and decided is in the journal; the hub may be restarted between any
 * two steps. Nothing moves but what the technician has asked for, one step at a time, while no orders are taken.
 */
export function createAcceptance(context: () => Context) {
  let run: Run | undefined
  let revision = 0

  /** Why nothing may move for an acceptance now. */
  function hindrance(): string | null {
    const { journal } = context()
    if (!journal.meta.held().orders) return 'The hub takes orders: stop them first.'
    return journal.orders.unfinished().length > 0 ? 'An order is under way: let it end first.' : null
  }

  function begin(by: string, parts: readonly string[] | null): LocalOutcome {
    const { journal, runtime, cloud, software, ledger, hardware, handle } = context()
    const name = by.trim()
    const known = new Set(stepsOf(hardware).map(({ part }) => part))
    if (name === '' || (parts !== null && (parts.length === 0 || parts.some((part) => !known.has(part)))))
      return no('invalid')
    if (journal.acceptances.open())
      return no('not_now', 'An acceptance is under way: go on with it, or end it.')
    const isTaken = handle(() => {
      const id = uuidv7(runtime)
      journal.acceptances.begin({
        id,
        by: name,
        parts: parts && JSON.stringify(parts),
        software,
        begun_at: cloud.now(),
      })
      ledger.report({ kind: 'local', action: 'begin_acceptance', subject: HUB_SUBJECT, outcome: 'executed' })
    })
    return changed(isTaken)
  }

  function changed(isTaken: boolean): LocalOutcome {
    if (!isTaken) return no('unavailable')
    revision++
    return done
  }

  /** Begins a step. What comes of it is in the protocol when it is over. */
  function beginStep(stepId: string): LocalOutcome {
    const row = context().journal.acceptances.open()
    const step = row && stepsNow(context(), row).find(({ id }) => id === stepId)
    if (!step) return no('not_found')
    if (run) return no('not_now', 'Another step is being carried out.')
    const hindered = step.moves ? hindrance() : null
    if (hindered !== null) return no('not_now', hindered)
    const { runtime, settings } = context()
    const before = readingsOf(context())
    run = {
      step,
      before,
      last: before,
      seen: [],
      isDone: false,
      cancelTimeout: runtime.clock.after(settings.acceptanceStepMs, () => conclude('too_late', null)),
    }
    revision++
    const stands = obstacle(step.check, before)
    if (stands !== undefined) conclude('refused', stands)
    else carryOut(run)
    return done
  }

  function carryOut(mine: Run): void {
    const { check } = mine.step
    switch (check.of) {
      case 'controller':
      case 'temperature':
        return conclude('carried_out', null)
      case 'content':
        return finished(mine)
      case 'door':
        if (check.hasLock && !unlock(check.door)) return conclude('refused', 'its lock cannot be driven')
        return finished(mine)
      case 'open':
        return command(mine, { name: 'open_bin', bin: check.bin }, () => finished(mine))
      case 'close':
        return command(mine, { name: 'close_bin', bin: check.bin }, () => finished(mine))
      case 'lift':
        return command(mine, { name: 'raise_bin', bin: check.bin }, () =>
          command(mine, { name: 'lower_bin', bin: check.bin }, () => finished(mine)),
        )
      case 'row': {
        const bin = freeBin()
        if (bin === undefined) return conclude('refused', 'no bin is empty and closed, with its lift down')
        mine.bin = bin
        return command(mine, { name: 'test_dispense', location: check.location, bin }, ({ data }) => {
          mine.drops = Number(data?.['drops'] ?? 0)
          finished(mine)
        })
      }
    }
  }

  function unlock(door: string): boolean {
    const { doors, settings, ledger, handle } = context()
    if (!doors.unlock(door, settings.acceptanceStepMs)) return false
    handle(() =>
      ledger.report({
        kind: 'local',
        action: 'unlock_door',
        subject: doorSubject(door),
        outcome: 'executed',
      }),
    )
    return true
  }

  function freeBin(): number | undefined {
    return viewBins(context()).find((bin) => isAvailable({ ...bin, enabled: true }) && isPrepared(bin))
      ?.number
  }

  function command(mine: Run, body: HubCommand, onExecuted: (result: CommandResult) => void): void {
    operate(context(), body, (result) => {
      if (run !== mine) return
      if (result.outcome === 'executed') return onExecuted(result)
      const fault = result.data?.['fault']
      const drops = result.data?.['drops']
      if (typeof drops === 'number') mine.drops = drops
      conclude(
        result.outcome,
        typeof fault === 'string' ? fault : (reasons[result.reason ?? ''] ?? result.reason),
      )
    })
  }

  /** The hub has done its part: what sensors have to say is waited for, and a moment longer for what they should not say. */
  function finished(mine: Run): void {
    mine.isDone = true
    look()
  }

  /** Looks at all sensors. Called after each event of the hub. */
  function look(): void {
    if (!run) return
    const now = readingsOf(context())
    const changes = changesOf(run.last, now)
    run.last = now
    if (changes.length > 0) {
      run.seen.push(...changes)
      revision++
    }
    const { step, isDone, before, seen, bin } = run
    if (!isDone || run.cancelSettle || !isAllSeen(step.check, { before, seen, bin })) return
    const { doors, runtime, settings } = context()
    // A bolt that is thrown beside an open door keeps it open; one that says so is locked by its own time.
    if (step.check.of === 'door' && step.check.hasLock && doors.status(step.check.door) !== 'open')
      doors.lock(step.check.door)
    run.cancelSettle = runtime.clock.after(settings.acceptanceSettleMs, () => conclude('carried_out', null))
  }

  /** Ends the step that is being carried out: what was seen goes into the protocol. */
  function conclude(end: Observation['end'], why: string | null): void {
    if (!run) return
    const { step, bin, drops, before } = run
    run.cancelTimeout()
    run.cancelSettle?.()
    const { check } = step
    const { doors, devices, journal, cloud, handle } = context()
    if (check.of === 'door' && check.hasLock && doors.status(check.door) !== 'open') doors.lock(check.door)
    const seen = [...run.seen, ...changesOf(run.last, readingsOf(context()))]
    run = undefined
    const celsius = check.of === 'temperature' ? devices.fridge(check.fridge).celsius : undefined
    const observation: Observation = { before, seen, end, why, celsius, bin, drops }
    const row = journal.acceptances.open()
    if (!row) return
    const isTaken = handle(() =>
      journal.acceptances.add({
        acceptance_id: row.id,
        ...placeOf(row, step),
        observed: observedWords(check, observation),
        agrees: judge(check, observation).agrees ? 1 : 0,
        at: cloud.now(),
      }),
    )
    if (!isTaken)
      context().log.error({ step: step.id }, 'what was seen of a step could not be kept: the disk is full')
    revision++
  }

  function placeOf(row: AcceptanceRow, { id, part, title, expected }: AcceptanceStep) {
    const position = stepsNow(context(), row).findIndex((each) => each.id === id)
    return { step: id, position, part, title, expected }
  }

  /** The technician waits no longer. What moves ends by itself. */
  function stop(): LocalOutcome {
    if (!run) return no('not_found')
    conclude('stopped', null)
    return done
  }

  /** The technician's word on the last attempt of a step. What the hub saw otherwise needs a remark to be passed. */
  function decide(stepId: string, verdict: 'passed' | 'failed', remark: string): LocalOutcome {
    const { journal, handle } = context()
    const row = journal.acceptances.open()
    const last = row && journal.acceptances.attempts(row.id).findLast(({ step }) => step === stepId)
    if (!last) return no('not_found')
    if (run?.step.id === stepId) return no('not_now', 'The step is being carried out.')
    if (verdict === 'passed' && last.agrees === 0 && remark.trim() === '')
      return no(
        'not_now',
        'The hub did not see what was expected: say in a remark why it is passed all the same.',
      )
    return changed(handle(() => journal.acceptances.decide(verdict, remark.trim(), last.number)))
  }

  /** Ends it: the report goes to the cloud with everything else, once, whenever the cloud is there. */
  function end(): LocalOutcome {
    const { journal, cloud, ledger, handle } = context()
    const row = journal.acceptances.open()
    if (!row) return no('not_found')
    if (run) return no('not_now', 'A step is being carried out.')
    const firmware = firmwareNow(context())
    const isTaken = handle(() => {
      const at = cloud.now()
      const tried = new Set(journal.acceptances.attempts(row.id).map(({ step }) => step))
      for (const step of stepsNow(context(), row))
        if (!tried.has(step.id))
          journal.acceptances.add({
            acceptance_id: row.id,
            ...placeOf(row, step),
            observed: NOT_DONE,
            agrees: 0,
            at,
          })
      const result = resultOf(journal.acceptances.attempts(row.id))
      journal.acceptances.end({ id: row.id, result, firmware: JSON.stringify(firmware), ended_at: at })
      reportAcceptance(context(), row.id)
      ledger.report({ kind: 'local', action: 'end_acceptance', subject: HUB_SUBJECT, outcome: 'executed' })
    })
    return changed(isTaken)
  }

  function state(): AcceptanceState {
    const row = context().journal.acceptances.open()
    return {
      id: row?.id ?? null,
      revision,
      hindrance: hindrance(),
      running: run ? { step: run.step.id, seen: run.seen.map(({ of, is }) => `${of}: ${is}`) } : null,
    }
  }

  return {
    begin,
    beginStep,
    stop,
    decide,
    end,
    state,
    protocol: (id?: string) => protocolOf(context(), id),
    look,
    parts: () => [...new Set(stepsOf(context().hardware).map(({ part }) => part))],
    kept: () =>
      context()
        .journal.acceptances.list()
        .flatMap(({ id, by, begun_at, ended_at, result }) =>
          ended_at === null || result === null ? [] : [{ id, by, begun_at, ended_at, result }],
        ),
    /** The hub ends: what is being carried out is not waited for. */
    leave(): void {
      run?.cancelTimeout()
      run?.cancelSettle?.()
      run = undefined
    },
  }
}

/** Why a command was not carried out, for the protocol. */
const reasons: Readonly<Record<string, string>> = {
  offline: 'its controller is not connected',
  timeout: 'no result came from its controller',
  nack: 'its controller refused',
  interlock: 'it must not move now: an interlock',
  interrupted: 'the hub was interrupted',
  fault: 'a fault',
}
