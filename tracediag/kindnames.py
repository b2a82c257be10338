"""Which names mean which kind: one ordered list of (kind, regular expression) a family of names; the first that matches wins.

Written from the names that operators, kernels and runtime calls have in real traces; `kinds` compiles and applies them.
"""

from __future__ import annotations

__all__ = ["COPIES", "KERNELS", "RUNTIME", "TENSORFLOW", "TORCH"]

RUNTIME = (
    ("compile", r"ModuleLoad|LibraryLoad|nvrtc|LibraryGetKernel|LinkComplete|hiprtc"),
    ("sync", r"Synchronize|^(cuda|hip|cu)Memcpy(DtoH|HtoD|DtoD)?(_v2)?$|(Stream|Event)Query$|WaitEvent$"),
    ("alloc", r"Malloc|Free|MemAlloc|HostAlloc|MemCreate|MemMap|MemUnmap|MemRelease|MemPool|HostRegister|MemGetInfo"),
    ("launch", r"Launch|Memcpy|Memset|GraphExec"),
)
KERNELS = (
    ("sync", r"\bspin_kernel\b"),
    (
        "collective",
        (
            r"nccl|rccl|multimem_(all|reduce|one|two)|(one|two)_shot_all_?reduce|cross_device_reduce|allreduce|all_reduce|all-reduce|"
            r"all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast|^DeepEP|nvshmem|msccl"
        ),
    ),
    ("memset", r"^Memset|MemSet$"),
    ("input_wait", r"^infeed"),
    ("copy_d2d", r"^copy-(start|done)"),
    ("attention", r"flash_|fmha|attn_fwd|attn_bwd|_attn|attention|mha_|paged_|FlashAttn|mem_efficient|AttnFwd"),
    ("embedding_grad", r"embedding_backward|compute_grad_weight|split_embedding_backward|embedding_bag_.*backward|EmbeddingBag_accGrad"),
    (
        "embedding_lookup",
        (r"embedding_(codegen_)?forward|embedding_bag|indexSelect|vectorized_gather_kernel|EmbeddingBag_update|GatherOpKernel"),
    ),
    ("optimizer_update", r"multi_tensor_apply|FusedAdam|fused_adam|ApplyAdam|ApplyGradientDescent|ApplyMomentum|SparseApply|fused_sgd"),
    (
        "conv",
        (
            r"conv(?!ert)|Conv[123]D|scudnn|wgrad|dgrad|winograd|implicit_?gemm|fprop|igemm_|miopenSp3|gfx9.*conv|computeOffsets|Im\w*2[cC]ol|im2col|"
            r"col2im|cudnn::cnn|cask_|Im2Col|Op2dTensorGeneric|nhwckrsc"
        ),
    ),
    (
        "norm",
        (
            r"bn_(fw|bw)|batch_?norm|BatchNorm|layer_?norm|LayerNorm|group_?norm|GroupNorm|RowwiseMoments|rms_?norm|RMSNorm|GammaBeta|"
            r"cuComputePartGrad|cuComputeGrad|ComputeInternalGradients|ComputeBackwardFusedParams|ComputeFusedParams|cudnn::norm|welford"
        ),
    ),
    ("rnn", r"RNN_|elemWiseRNN|lstm_cell|gru_cell|LSTM|persistRNN"),
    (
        "matmul",
        (
            r"gemm|gemv|cutlass|Cijk_|cublas|xmma|nvjet|_mm_|_mm\b|splitK|bmm_|dot_kernel|dot_general|^dot|tensile|Gemm|wgmma|_tensorop_|"
            r"matmul|MatMul|reduce_1Block_kernel"
        ),
    ),
    ("softmax", r"softmax|SoftMax|Softmax"),
    ("loss", r"nll_loss|cross_entropy|mse_|CrossEntropy|bce_|smooth_l1|binary_cross"),
    ("pool", r"pool|Pool"),
    ("resample", r"upsample|Resize|interpolate|grid_sampl"),
    ("random", r"^rng|distribution_elementwise|dropout|philox|Random|randperm|bernoulli|fused_dropout"),
    (
        "layout",
        (
            r"nchwToNhwc|nhwcToNchw|transpose|ShuffleInTensor3|SwapDimension|CatArray|Transpose|nchw2nhwc|nhwc2nchw|PadInput|"
            r"tensorTransform|TransData|permute_2D_data|^(reshape|slice|pad|concatenate|data formatting)\b|"
            r"flip_kernel|roll_|_cat\b|cat_kernel|triu_|tril_"
        ),
    ),
    (
        "index",
        (
            r"index_|^dynamic-(update-)?slice|indexing_|IndexKernel|RadixSort|Radix|gather|scatter|Scatter|topk|TopK|sort|nonzero|Select|unique|Unique|masked_|"
            r"where_|permute_2D_lengths|bounds_check|find_long_segments|ReduceByKey|DeviceCompact|searchsorted|DeviceScan|cub::.*Scan|"
            r"DeviceRunLength|histogram|bincount|arange|linearize_index"
        ),
    ),
    (
        "cast",
        r"cast_kernel|CastOp|(^|_)Cast(_\d+)?$|convert_element|loop_convert|wrapped_convert|^convert|float8_copy|direct_copy.*LoadWithCast",
    ),
    ("reduction", r"reduce|Reduce|cub::|SumOps|triton_red|triton_per|ArgMax|_sum|norm_kernel|lpnorm"),
    (
        "activation",
        (
            r"[Gg]elu|GELU|relu|Relu|ReLU|silu|Silu|swish|swiglu|sigmoid|tanh|threshold_kernel|clamp_scalar|hardtanh|leaky|softplus|"
            r"act_and_mul"
        ),
    ),
    (
        "elementwise",
        (
            r"elementwise|direct_copy|Functor|triton_poi|loop_|input_.*fusion|^fusion|copy_kernel|CopyKernel|OpTensor|SubTensorOp|"
            r"scalePackedTensor|Op[1-5]dTensor|pow_|foreach|_fused|fused_|_op_|Eigen::internal|addcmul|addcdiv|lerp|mul|add_|^add|"
            r"copyBuffer|fill_|__amd_rocclr_|Fill|wrapped_|bitcast|broadcast|^select|rotary|rope|^copy|AiCore_|AiCpu_|Relu6?$|"
            r"(loop|input|output|custom) fusion|"
            r"^(iota|maximum|minimum|subtract|divide|remainder|exponential|log|logistic|"
            r"power|sqrt|rsqrt|cbrt|negate|abs|sign|floor|ceil|round|clamp|compare|and|or|xor|not|shift|is-finite|atan2|sine|cosine|erf|map|constant)\b"
        ),
    ),
)
TORCH = (
    (
        "compile",
        (r"\(dynamo_timed\)|^Pregraph bytecode|^TorchDynamo Cache Lookup|compile_inner|^TorchDynamo|^Compiled.*compile|PythonDispatchMode"),
    ),
    ("input_wait", r"^enumerate\(DataLoader\)#.*__next__|^enumerate\(IterDataPipe"),
    (
        "collective",
        (r"^c10d::|^nccl:|^gloo:|^mpi:|^ucc:|record_param_comms|_c10d_functional|vllm::all_reduce|symm_mem::|all_reduce$|all_gather$"),
    ),
    ("sync", r"^aten::(item|_local_scalar_dense|is_nonzero)$"),
    (
        "embedding_grad",
        (r"^aten::(embedding_dense_backward|embedding_sparse_backward|embedding_backward|_embedding_bag\w*backward)|EmbeddingBackward"),
    ),
    ("embedding_lookup", r"^aten::(embedding|embedding_bag|_embedding_bag)$|fbgemm::.*(lookup|embedding)"),
    ("optimizer_update", r"^aten::(_foreach_|_fused_(adam|sgd|adagrad))|^Optimizer\.(step|zero_grad)#"),
    ("attention", r"attention"),
    (
        "conv",
        (
            r"^aten::(conv|_conv|convolution|cudnn_conv|mkldnn_conv|miopen_conv|thnn_conv|slow_conv|_slow_conv|_convolution|"
            r"mkldnn_rnn_conv)|ConvolutionBackward"
        ),
    ),
    ("rnn", r"^aten::(lstm|gru|rnn|_cudnn_rnn|_thnn_fused|mkldnn_rnn|miopen_rnn|lstm_cell|gru_cell)|^mkldnn::_rnn"),
    ("norm", r"norm(_backward)?$|^aten::(native_|cudnn_|miopen_|_)?(batch|layer|group|instance)_norm|NormBackward|rms_norm"),
    (
        "matmul",
        (
            r"^aten::(mm|addmm|bmm|baddbmm|linear|matmul|addmv|mv|dot|addbmm|mkldnn_linear|_addmm_activation|einsum|linear_backward|"
            r"_scaled_mm|vdot|outer|ger|tensordot)$|moe_forward|^mkl::|mkldnn::_linear"
        ),
    ),
    ("softmax", r"^aten::(_?softmax|_?log_softmax)|_softmax_backward|SoftmaxBackward"),
    ("loss", r"loss|cross_entropy"),
    (
        "activation",
        (
            r"^aten::(relu|relu_|threshold|threshold_backward|gelu|silu|sigmoid|tanh|hardtanh|leaky_relu|elu|softplus|mish|clamp_min|clamp|"
            r"glu|hardswish|log_sigmoid)"
        ),
    ),
    ("pool", r"pool"),
    ("resample", r"upsample|interpolate|grid_sampler"),
    (
        "random",
        (
            r"^aten::(dropout|native_dropout|bernoulli|rand|normal|uniform|multinomial|exponential|random|_fused_dropout|feature_dropout)|"
            r"DropoutBackward"
        ),
    ),
    (
        "index",
        (
            r"^aten::(index|_index|gather|scatter|select_backward|slice_backward|unique|_unique|nonzero|masked|where|sort|topk|argsort|take|"
            r"searchsorted|one_hot|repeat_interleave|bincount|cumsum|_coalesce|coalesce|sparse_mask|_sparse|sparse_|isin|flip|roll|histc|"
            r"triu|tril|arange|narrow_copy|index_put)"
        ),
    ),
    ("cast", r"^aten::(_to_copy|to)$"),
    (
        "layout",
        (
            r"^aten::(contiguous|clone|copy_|cat|stack|split|pad|constant_pad|repeat|tile|chunk|unfold|im2col|col2im|_reshape_alias|reshape|"
            r"permute|transpose|t|view|expand|unsqueeze|squeeze|flatten|as_strided|select|slice|narrow|resize_|detach|alias|lift_fresh|"
            r"unbind|swapaxes|movedim|_unsafe_view|numpy_T|real|imag|split_with_sizes)_?$"
        ),
    ),
    ("memset", r"^aten::(zero_|fill_|zeros|zeros_like|ones|ones_like|full|full_like|new_zeros|new_full|new_ones)$"),
    ("alloc", r"^aten::(empty|empty_like|empty_strided|new_empty|new_empty_strided|resize_|set_)$"),
    (
        "reduction",
        (
            r"^aten::(sum|mean|norm|amax|amin|max|min|argmax|argmin|any|all|prod|var|std|linalg_vector_norm|linalg_norm|logsumexp|var_mean|"
            r"std_mean|count_nonzero|isfinite|isnan|median|aminmax|equal)"
        ),
    ),
    ("elementwise", r"^aten::"),
)
TENSORFLOW = (
    (
        "compile",
        (
            r"^tf\.function-graph_building|Compiler|Compile|^XlaCompile|^MakeIterator|^BuildGraph|OptimizeGraph|Grappler|^Optimizing|"
            r"GraphConstructor|^MlirPassthrough|^Instantiate(?!dCaptured)|^JitCompiler|trace_to_jaxpr|lower_sharding|backend_compile"
        ),
    ),
    ("input_wait", r"^IteratorGetNext|^EagerLocalExecute: IteratorGetNext|^OptionalGetNext"),
    ("input_work", r"^Iterator::|^TFRecord|^Prefetch|^ParallelMap"),
    ("collective", r"^CollectiveReduce|^Collective|^NcclAllReduce|^Horovod|^Nccl|^CrossReplicaSum"),
    ("sync", r"^TFE_TensorHandleResolve|BlockHostUntil|^BufferSequencingEvent"),
    ("copy_d2d", r"^EagerCopyToDevice|^_Send|^_Recv|^_HostSend|^_HostRecv|^CopyToDevice"),
    ("python", r"^EagerPyFunc|^PyFunc"),
    ("variable_read", r"^ReadVariableOp$|^VarHandleOp$|^ReadVariableXlaSplit|^_VarHandlesOp"),
    ("embedding_grad", r"^UnsortedSegmentSum|^SparseSegment\w*Grad|^IndexedSlices"),
    ("embedding_lookup", r"^ResourceGather|^SparseSegment"),
    (
        "optimizer_update",
        (r"^(Resource)?(Sparse)?Apply|^ResourceSparseApply|^ResourceScatter|^Scatter(Add|Sub|Update)$|^Assign(Add|Sub)?(VariableOp)?$"),
    ),
    ("conv", r"Conv[123]D|Conv2D|DepthwiseConv|^_FusedConv|^convolution|cudnn\$conv"),
    ("matmul", r"MatMul|^Einsum|^XlaDot|^_FusedMatMul|^dot|__cublas|^gemm"),
    ("attention", r"[Aa]ttention"),
    ("rnn", r"^CudnnRNN|^(Stateless)?While|^TensorList|^BlockLSTM|^GRUBlock|^LSTMBlock"),
    ("norm", r"BatchNorm|LayerNorm|GroupNorm|^LRN"),
    ("loss", r"CrossEntropy|L2Loss|^CTCLoss"),
    ("softmax", r"Softmax"),
    ("activation", r"^(Relu|Gelu|Tanh|Sigmoid|Elu|Selu|Softplus|Softsign|LeakyRelu|Swish)|^(Relu6?|Tanh|Sigmoid|Elu|LeakyRelu)Grad"),
    ("pool", r"Pool"),
    ("resample", r"^Resize|^CropAndResize"),
    ("cast", r"^Cast$|^convert"),
    ("random", r"[Rr]andom|^Multinomial|^TruncatedNormal|^StatelessMultinomial|^Dropout|^StatelessDropout|^rng"),
    (
        "layout",
        (
            r"^(Transpose|Reshape|Pad|PadV2|ConcatV2|ConcatOffset|Concat|Split|SplitV|Tile|Pack|Unpack|ExpandDims|Squeeze|BroadcastTo|"
            r"Identity|IdentityN|Snapshot|Copy|MirrorPad|SpaceToBatchND|BatchToSpaceND|Shape|ShapeN|Rank|Size|StopGradient|DataFormat\w*)$|"
            r"Nhwc|Nchw|^transpose|^copy|^bitcast|^concatenate|^slice|^pad|^reshape|^ToMkl|ToTf$"
        ),
    ),
    (
        "index",
        (
            r"^(GatherV2|GatherNd|Gather|ScatterNd|StridedSlice|StridedSliceGrad|Slice|Where|Unique|UniqueV2|OneHot|TopKV2|BooleanMask|"
            r"DynamicStitch|DynamicPartition|TensorScatter\w*|Cumsum|InvertPermutation|Range|Bincount|SegmentSum|SortV2)|^gather|^scatter|"
            r"^sort|^dynamic-(update-)?slice"
        ),
    ),
    ("reduction", r"^(Sum|Mean|Max|Min|ArgMax|ArgMin|Prod|All|Any|L2Loss|EuclideanNorm|InTopKV2|BiasAddGrad)$|^reduce|^input_.*reduce"),
    ("memset", r"^(ZerosLike|OnesLike|Fill|Zeros|Const|_EagerConst)$"),
    (
        "elementwise",
        (
            r"^(Add|AddV2|AddN|Mul|Sub|RealDiv|Div|DivNoNan|Sqrt|Rsqrt|RsqrtGrad|SqrtGrad|Square|SquaredDifference|Select|SelectV2|Exp|Log|"
            r"Log1p|Pow|Neg|Abs|Maximum|Minimum|Reciprocal|ReciprocalGrad|Sign|Floor|FloorDiv|FloorMod|Greater\w*|Less\w*|Equal|NotEqual|"
            r"Logical\w*|BiasAdd|ClipByValue|Round|Cos|Sin|Erf|Erfc|IsFinite|IsNan|BroadcastGradientArgs|_Fused\w*|InvGrad|Xdivy|Expm1|"
            r"Softplus\w*|TruncateDiv|BitwiseAnd|NextAfter|Atan2|PreventGradient|CheckNumericsV2?|DivNoNanGrad|TruncateMod)$|fusion|^(add|"
            r"multiply|subtract|divide|maximum|minimum|exponential|log|negate|select|compare|broadcast|power|rsqrt|tanh|abs|and|or|iota|"
            r"constant|map)\b"
        ),
    ),
)
COPIES = (
    ("copy_h2d", r"HtoD|H2D|HostToDevice|HOST_TO_DEVICE"),
    ("copy_d2h", r"DtoH|D2H|DeviceToHost|DEVICE_TO_HOST"),
    ("copy_d2d", r"DtoD|D2D|PtoP|P2P|DeviceToDevice|[Cc]opy"),
)
