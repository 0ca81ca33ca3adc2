//! A model's parameters by path: what is saved, fingerprinted, exported and stepped by an optimiser.

use std::collections::BTreeMap;

use architecture::HostTensor;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor, TensorData};
use thiserror::Error;

/// A parameter's path in the model and its shape, in the order in which the model is walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterShape {
    /// Such as `blocks.0.attention.query.weight`.
    pub path: String,
    /// Such as `[64, 64]`.
    pub shape: Vec<usize>,
}

impl ParameterShape {
    /// Number of entries.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Weights that don't fit a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// A parameter that the weights lack.
    #[error("the weights hold no tensor {path}, which the model needs with shape {shape:?}")]
    Missing { path: String, shape: Vec<usize> },
    /// A parameter of another shape.
    #[error("tensor {path} has shape {found:?}, but the model needs {expected:?}")]
    Shape { path: String, found: Vec<usize>, expected: Vec<usize> },
    /// A tensor that the model has no place for.
    #[error("the weights hold a tensor {path} that the model has no place for")]
    Unknown { path: String },
}

/// Every parameter's path and shape, in the order in which the model is walked.
pub fn of<M: Module>(model: &M) -> Vec<ParameterShape> {
    let mut parameters = Vec::new();
    visit(model, |path, shape, _| parameters.push(ParameterShape { path, shape }));
    parameters
}

/// Every parameter flattened, in the order of [`of`].
pub fn flat_parameters<M: Module>(model: &M) -> Vec<Tensor<1>> {
    let mut tensors = Vec::new();
    visit(model, |_, _, tensor| tensors.push(tensor.inner()));
    tensors
}

/// Every parameter's gradient flattened, in the order of [`of`]; zeros where the loss doesn't reach it.
pub fn flat_gradients<M: Module>(model: &M, gradients: &mut Gradients) -> Vec<Tensor<1>> {
    struct Visitor<'a>(&'a mut Gradients, Vec<Tensor<1>>);
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const N: usize>(&mut self, param: &Param<Tensor<N>>) {
            let value = param.val();
            let gradient = value.grad_remove(self.0).unwrap_or_else(|| value.inner().zeros_like());
            self.1.push(gradient.flatten(0, N - 1));
        }
    }
    let mut visitor = Visitor(gradients, Vec::new());
    model.visit(&mut visitor);
    visitor.1
}

/// The model with its parameters replaced, in the order of [`of`]; each keeps its shape and needs a gradient again.
pub fn replace_parameters<M: Module>(model: M, flat: Vec<Tensor<1>>) -> M {
    struct Mapper(std::vec::IntoIter<Tensor<1>>);
    impl ModuleMapper for Mapper {
        fn map_float<const N: usize>(&mut self, param: Param<Tensor<N>>) -> Param<Tensor<N>> {
            let Some(flat) = self.0.next() else { return param };
            param.map(|old| {
                let needs_gradient = old.is_require_grad();
                let new = flat.reshape(old.dims());
                if needs_gradient { Tensor::from_inner(new).require_grad() } else { new }
            })
        }
    }
    model.map(&mut Mapper(flat.into_iter()))
}

/// Every parameter on the host by path.
pub fn to_host<M: Module>(model: &M) -> BTreeMap<String, HostTensor> {
    let mut tensors = BTreeMap::new();
    visit(model, |path, shape, tensor| {
        let values = host_values(tensor);
        tensors.insert(path, HostTensor { shape, values });
    });
    tensors
}

/// The model with its parameters replaced by those of `tensors`.
///
/// # Errors
/// Names the first parameter that is missing, has another shape, or has no place in the model.
pub fn from_host<M: Module>(model: M, tensors: &BTreeMap<String, HostTensor>) -> Result<M, LoadError> {
    let mut flat = Vec::new();
    let mut problem = None;
    let places = of(&model);
    visit(&model, |path, expected, old| match tensors.get(&path) {
        Some(tensor) if tensor.shape == expected => {
            let data = TensorData::new(tensor.values.clone(), [tensor.values.len()]);
            flat.push(Tensor::from_data(data, &old.inner().device()));
        }
        found => {
            problem.get_or_insert(match found {
                Some(tensor) => LoadError::Shape { path, found: tensor.shape.clone(), expected },
                None => LoadError::Missing { path, shape: expected },
            });
        }
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    if let Some(path) = tensors.keys().find(|path| !places.iter().any(|place| place.path == **path)) {
        return Err(LoadError::Unknown { path: path.clone() });
    }
    Ok(replace_parameters(model, flat))
}

/// A flat f32 tensor's values on the host.
pub fn host_values(tensor: Tensor<1>) -> Vec<f32> {
    // Conversion to f32 is exact for the f32 tensors of every run.
    tensor.into_data().iter::<f32>().collect()
}

fn visit<M: Module>(model: &M, each: impl FnMut(String, Vec<usize>, Tensor<1>)) {
    struct Visitor<F> {
        path: Vec<String>,
        each: F,
    }
    impl<F: FnMut(String, Vec<usize>, Tensor<1>)> ModuleVisitor for Visitor<F> {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
        fn visit_float<const N: usize>(&mut self, param: &Param<Tensor<N>>) {
            let value = param.val();
            (self.each)(self.path.join("."), value.dims().to_vec(), value.flatten(0, N - 1));
        }
    }
    model.visit(&mut Visitor { path: Vec::new(), each });
}
