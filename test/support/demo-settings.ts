import { freePorts } from './ports.ts'

/** Settings of the demo in `folder`, with free ports. */
export async function freeDemoSettings(folder: string) {
  const [cloud, edge, simulator, broker, management] = await freePorts(5)
  return {
    PORT: cloud!,
    EDGE_PORT: edge!,
    SIMULATOR_PORT: simulator!,
    MANAGEMENT_PORT: management!,
    MQTT_PORT: broker!,
    DATA_DIR: folder,
    GPIO: 'socket',
    GPIO_BASE: 512,
    shutdownTimeoutMs: 8000,
    fresh: false,
  } as const
}
