import '../support/small-limits.ts'
import { commerceWork } from '../../cloud/commerce/work.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { WorkRunner, type WorkKinds } from '../../cloud/platform/work/runner.ts'
import { startWorker } from '../../cloud/platform/work/workers.ts'
import { putBack } from '../../cloud/clock-step.ts'
import { ListeningWatch } from '../../cloud/platform/listening.ts'
import { hubDomain } from '../../cloud/hub-domain.ts'
import { Gateway } from '../../cloud/gateway/gateway.ts'
import { ProcessorUnavailable } from '../../cloud/commerce/processors/processor.ts'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import type { CloudSettings } from '../../cloud/platform/settings/limits.ts'
import type { GatewayLimits } from '../../cloud/platform/settings/gateway-limits.ts'
import type { Bank } from './bank.ts'
import type { Chance } from './chance.ts'
import type { CloudStore } from './cloud-store.ts'
import type { Coverage } from './coverage.ts'
import type { CrashPoints } from './crash-points.ts'
import type { Network } from './network.ts'
import type { Life, Scheduler } from './scheduler.ts'
import { testContext } from '../world/context.ts'

interface Parts {
  /** `cloud-a`, the name of its line to the broker. */
  name: string
  scheduler: Scheduler
  network: Network
  chance: Chance
  coverage: Coverage
  crashPoints: CrashPoints
  store: CloudStore
  bank: Bank
  settings: { rules: CloudSettings; gateway: GatewayLimits }
  /** Due work beside that of commerce. */
  moreWork?: ((context: CloudContext) => WorkKinds) | undefined
}

/** A process of the cloud, over its lives. */
export class CloudNode {
  readonly #parts: Parts
  #life: Life | undefined
  #services: CommerceServices | undefined
  /** Error of its wall clock in milliseconds. */
  #wallOffset = 0
  /** Kinds of due work that it runs. */
  kinds: ReadonlySet<string> = new Set()
  /** Prevents the start of the process while set. */
  heldDown = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get name(): string {
    return this.#parts.name
  }

  get life(): Life | undefined {
    return this.#life
  }

  get services(): CommerceServices | undefined {
    return this.#life?.alive === true ? this.#services : undefined
  }

  start(): void {
    const { name, scheduler, network, chance, coverage, crashPoints, store, bank, settings } = this.#parts
    if (this.heldDown || this.#life?.alive === true) return
    const life = scheduler.newLife(name, () => {
      coverage.hit('cloud lives ended')
      network.cut((one) => one === life, 'process gone')
      void store.close(life)
      scheduler.plan(WORLD, chance.between(200, 8000), () => this.start())
    })
    this.#life = life
    const checkpoint = crashPoints.forLife(life)
    const runtime = { clock: scheduler.clock(life, () => this.#wallOffset), random: chance }
    const db = store.openFor(life, checkpoint)
    const { listeningGapMs: gapMs } = settings.rules
    const listening = new ListeningWatch({
      clock: runtime.clock,
      gapMs,
      hearsBroker: () => gateway.hearsBroker(gapMs),
      pingDatabase: () => db.ping(),
    })
    const context = testContext(db, runtime, {
      checkpoint,
      listening,
      settings: settings.rules,
      onFault: (error) => {
        if (!(error instanceof ProcessorUnavailable)) scheduler.report(error, life)
      },
    })
    const processor = bank.processorFor(life, chance, checkpoint)
    const processId = `${name}-${scheduler.time}`
    const gateway = new Gateway({
      domain: hubDomain(),
      context,
      broker: { kind: 'shared', open: network.transportFor(name, life, { clientId: processId }) },
      processId,
      settings: settings.gateway,
    })
    this.#services = { context, processor, commands: gateway.commands }
    scheduler.plan(life, 0, () => {
      gateway.start()
      listening.start()
      const work = { ...commerceWork(this.#services!), ...this.#parts.moreWork?.(context) }
      this.kinds = new Set(Object.keys(work))
      new WorkRunner(context, work).start()
      startWorker(context, { processId, name, pid: 1 }, putBack)
    })
  }

  /** Suspends the process (SIGSTOP); its machine's clocks go on. */
  suspend(forMs: number): void {
    if (this.#life) this.#life.wakesAt = this.#parts.scheduler.time + forMs
  }

  get isSuspended(): boolean {
    return (this.#life?.wakesAt ?? 0) > this.#parts.scheduler.time
  }

  kill(reason = 'SIGKILL'): void {
    if (this.#life) this.#parts.scheduler.kill(this.#life, reason)
  }

  /** Shifts its wall clock. */
  shiftWall(offsetMs: number): void {
    this.#wallOffset = offsetMs
  }

  get wallOffset(): number {
    return this.#wallOffset
  }
}

const WORLD: Life = { name: 'world', alive: true, onCrash() {} }
