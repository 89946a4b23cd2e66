// SPDX-License-Identifier: Apache-2.0
// The tables of all parameter sets.
#pragma once

#include "configs/schema/schema.h"
#include "configs/spec/grammar.h"

namespace kvsim::config {

template <>
const Schema<DramTiming>& schema<DramTiming>();
template <>
const Schema<DramEnergy>& schema<DramEnergy>();
template <>
const Schema<DramRails>& schema<DramRails>();
template <>
const Schema<DramPartSpec>& schema<DramPartSpec>();
template <>
const Schema<AddressMapSpec>& schema<AddressMapSpec>();
template <>
const Schema<MemoryControllerSpec>& schema<MemoryControllerSpec>();

template <>
const Schema<StorageLink>& schema<StorageLink>();
template <>
const Schema<StorageController>& schema<StorageController>();
template <>
const Schema<StorageFlash>& schema<StorageFlash>();
template <>
const Schema<StorageHost>& schema<StorageHost>();
template <>
const Schema<StorageThermal>& schema<StorageThermal>();
template <>
const Schema<StoragePartSpec>& schema<StoragePartSpec>();

template <>
const Schema<CoreSpec>& schema<CoreSpec>();
template <>
const Schema<ClusterSpec>& schema<ClusterSpec>();
template <>
const Schema<CacheSpec>& schema<CacheSpec>();
template <>
const Schema<FabricSpec>& schema<FabricSpec>();
template <>
const Schema<InterconnectSpec>& schema<InterconnectSpec>();
template <>
const Schema<ScanSpec>& schema<ScanSpec>();
template <>
const Schema<RadioSpec>& schema<RadioSpec>();
template <>
const Schema<BurstSpec>& schema<BurstSpec>();
template <>
const Schema<SeriesSpec>& schema<SeriesSpec>();
template <>
const Schema<CpuLoadSpec>& schema<CpuLoadSpec>();
template <>
const Schema<MasterSpec>& schema<MasterSpec>();
template <>
const Schema<MasterUse>& schema<MasterUse>();
template <>
const Schema<FileReaderSpec>& schema<FileReaderSpec>();
template <>
const Schema<OsSpec>& schema<OsSpec>();
template <>
const Schema<SramSpec>& schema<SramSpec>();
template <>
const Schema<NpuSpec>& schema<NpuSpec>();
template <>
const Schema<DeviceSpec>& schema<DeviceSpec>();

template <>
const Schema<OppSpec>& schema<OppSpec>();
template <>
const Schema<ClockVoteSpec>& schema<ClockVoteSpec>();
template <>
const Schema<ClockFloorSpec>& schema<ClockFloorSpec>();
template <>
const Schema<ClockDomainSpec>& schema<ClockDomainSpec>();
template <>
const Schema<ClocksSpec>& schema<ClocksSpec>();
template <>
const Schema<FosterStageSpec>& schema<FosterStageSpec>();
template <>
const Schema<ThermalNodeSpec>& schema<ThermalNodeSpec>();
template <>
const Schema<ThermalLinkSpec>& schema<ThermalLinkSpec>();
template <>
const Schema<FanPointSpec>& schema<FanPointSpec>();
template <>
const Schema<FanTripSpec>& schema<FanTripSpec>();
template <>
const Schema<FanSpec>& schema<FanSpec>();
template <>
const Schema<ThermalCaseSpec>& schema<ThermalCaseSpec>();
template <>
const Schema<SensorSpec>& schema<SensorSpec>();
template <>
const Schema<TripSpec>& schema<TripSpec>();
template <>
const Schema<CoolingSpec>& schema<CoolingSpec>();
template <>
const Schema<PidSpec>& schema<PidSpec>();
template <>
const Schema<ThermalZoneSpec>& schema<ThermalZoneSpec>();
template <>
const Schema<TemperatureCapSpec>& schema<TemperatureCapSpec>();
template <>
const Schema<ThermalSpec>& schema<ThermalSpec>();
template <>
const Schema<PowerPartSpec>& schema<PowerPartSpec>();
template <>
const Schema<PowerLimitSpec>& schema<PowerLimitSpec>();
template <>
const Schema<PowerSpec>& schema<PowerSpec>();

template <>
const Schema<LocalLayers>& schema<LocalLayers>();
template <>
const Schema<LatentAttention>& schema<LatentAttention>();
template <>
const Schema<Experts>& schema<Experts>();
template <>
const Schema<LlmSpec>& schema<LlmSpec>();
template <>
const Schema<TensorType>& schema<TensorType>();
template <>
const Schema<TensorRule>& schema<TensorRule>();
template <>
const Schema<StoredTensor>& schema<StoredTensor>();
template <>
const Schema<WeightFormat>& schema<WeightFormat>();

template <>
const Schema<ExpertStorage>& schema<ExpertStorage>();
template <>
const Schema<KvTierSpec>& schema<KvTierSpec>();
template <>
const Schema<EngineSpec>& schema<EngineSpec>();
template <>
const Schema<ExpertUse>& schema<ExpertUse>();
template <>
const Schema<PageUse>& schema<PageUse>();
template <>
const Schema<WorkloadSpec>& schema<WorkloadSpec>();
template <>
const Schema<WeightStream>& schema<WeightStream>();
template <>
const Schema<MemorySpec>& schema<MemorySpec>();
template <>
const Schema<RunOptions>& schema<RunOptions>();
template <>
const Schema<SoakRule>& schema<SoakRule>();
template <>
const Schema<SoakSpec>& schema<SoakSpec>();
template <>
const Schema<RunSpec>& schema<RunSpec>();

}  // namespace kvsim::config
