import type { Checkpoint } from '../protocol/model/checkpoint.ts'
import type { GpioLines, HardwareDescription } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import type { OpenLinePort } from '../protocol/serial/line-port.ts'
import { createCore } from './core/core.ts'
import type { HubCore } from './core/hub-core.ts'
import { createControllers, type Controllers } from './hardware/controllers.ts'
import { createInbox } from './journal/inbox.ts'
import { createOutbox } from './journal/outbox.ts'
import type { Store } from './journal/store.ts'
import type { HubSettings } from './settings.ts'
import { createSync, type Sync } from './sync/sync.ts'

export interface HubOptions {
  runtime: Runtime
  log: Log
  store: Store
  hardware: HardwareDescription
  openPort: OpenLinePort
  gpio: GpioLines
  openTransport: OpenTransport
  checkpoint: Checkpoint
  settings: HubSettings
  /** Name and version, as the hello says it. */
  software?: string
}

export interface Hub {
  start(): void
  stop(): void
  readonly core: HubCore
  readonly sync: Sync
  readonly controllers: Pick<Controllers, 'links'>
}

/** A hub's service, composed of its parts; everything outside is a parameter. */
export function createHub(options: HubOptions): Hub {
  const { runtime, log, store, hardware, openPort, gpio, openTransport, checkpoint, settings } = options
  const outbox = createOutbox(store, runtime, settings.outbox)
  const inbox = createInbox(store, runtime, log)
  let links: Controllers['links'] = () => []
  const core = createCore({
    runtime,
    log,
    store,
    outbox,
    resetInbox: () => inbox.reset(),
    openControllers(events) {
      const controllers = createControllers(
        { hardware, openPort, runtime, log, settings: settings.links },
        events,
      )
      links = () => controllers.links()
      return controllers
    },
    gpio,
    hardware,
    settings: settings.core,
    checkpoint,
  })
  const sync = createSync({
    runtime,
    log,
    hubId: hardware.hubId,
    openTransport,
    outbox,
    inbox,
    core,
    software: options.software ?? 'larder-edge',
    checkpoint,
    settings: settings.sync,
  })
  return {
    core,
    sync,
    controllers: { links: () => links() },
    start() {
      core.start()
      sync.start()
    },
    stop() {
      sync.stop()
      core.stop()
      outbox.stop()
    },
  }
}
